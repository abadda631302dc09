"""Stamps: the first 24 bytes of a load generator's value, all big-endian.

    producer u64 | sequence u64 (from 0, for each producer and partition) | send time i64, microseconds since 1970

A value whose first 24 bytes contain a time outside the years 2000 to 2255, or a negative sequence, is unstamped.
Text is unstamped because of its first letter.

Owns the parsing, of a whole Arrow array at once. The native client writes stamps (`send_stamped`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

STAMP_BYTES: Final = 24
_FIRST_US: Final = 946_684_800_000_000
"""The year 2000."""
_LAST_US: Final = (1 << 53) - 1
"""The year 2255."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """The stamps of an array, in its order, without unstamped values."""

    producer: NDArray[np.uint64]
    sequence: NDArray[np.int64]
    sent_us: NDArray[np.int64]
    stamped: NDArray[np.bool_] | None
    """Mask of the stamped values; None: all."""


def parse_stamps(values: pa.Array) -> Stamps:
    """Parse the stamps of a binary array. A value that is null, too short or out of the range of times is unstamped."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    count = len(values)
    starts, ends, data = _extents(values)
    stamped = (ends - starts) >= STAMP_BYTES
    if values.null_count:
        stamped &= values.is_valid().to_numpy(zero_copy_only=False)
    every = bool(stamped.all())
    if not every:
        starts = starts[stamped]
    width = int(starts[1] - starts[0]) if len(starts) > 1 else STAMP_BYTES
    if every and count > 0 and starts[-1] - starts[0] == width * (count - 1) and (np.diff(starts) == width).all():
        rows = np.lib.stride_tricks.as_strided(data[starts[0] :], (count, STAMP_BYTES), (width, 1))
    else:
        rows = data[starts[:, None] + np.arange(STAMP_BYTES)]
    words = np.ascontiguousarray(rows).reshape(-1, STAMP_BYTES).view(">u8")
    producer = words[:, 0].astype(np.uint64)
    sequence, sent_us = (words[:, column].astype(np.uint64).view(np.int64) for column in (1, 2))
    likely = _are_likely(sequence, sent_us)
    if likely is not None:
        stamped[np.flatnonzero(stamped)[~likely]] = False
        producer, sequence, sent_us = producer[likely], sequence[likely], sent_us[likely]
        every = False
    return Stamps(producer, sequence, sent_us, None if every else stamped)


def _are_likely(sequence: NDArray[np.int64], sent_us: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Return a mask of valid stamps; None: all."""
    if len(sequence) == 0 or (sequence.min() >= 0 and sent_us.min() >= _FIRST_US and sent_us.max() <= _LAST_US):
        return None
    likely: NDArray[np.bool_] = (sequence >= 0) & (sent_us >= _FIRST_US) & (sent_us <= _LAST_US)
    return likely


def _extents(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the start and end of each value, and the bytes that contain them."""
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    wide = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    buffers = values.buffers()
    count = len(values) + 1 + values.offset
    offsets = np.frombuffer(buffers[1], np.dtype(np.int64 if wide else np.int32), count=count)[values.offset :]
    offsets = offsets.astype(np.int64)
    data = np.frombuffer(buffers[2], np.uint8) if buffers[2] is not None else np.empty(0, np.uint8)
    return offsets[:-1], offsets[1:], data
