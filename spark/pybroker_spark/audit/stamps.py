"""Stamps: the first 24 bytes of a value that a load generator sent, all big-endian.

    producer u64 | sequence u64 (from 0, for each producer and partition) | send time i64, microseconds since 1970

Owns their reading, a whole Arrow array at once. Writing is the native client's (`send_stamped`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

STAMP_BYTES: Final = 24


class Stamps(NamedTuple):
    """The stamps of an array, in its order, without the values that have none."""

    producer: NDArray[np.uint64]
    sequence: NDArray[np.int64]
    sent_us: NDArray[np.int64]
    stamped: NDArray[np.bool_] | None
    """Which values have one; None: all."""


def parse_stamps(values: pa.Array) -> Stamps:
    """Read the stamps of a binary array. A value that is null or too short has none."""
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
    sequence = words[:, 1].astype(np.uint64).view(np.int64)
    return Stamps(
        words[:, 0].astype(np.uint64),
        sequence,
        words[:, 2].astype(np.uint64).view(np.int64),
        None if every else stamped,
    )


def _extents(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Where each value begins and ends, and the bytes that they lie in."""
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    wide = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    buffers = values.buffers()
    count = len(values) + 1 + values.offset
    offsets = np.frombuffer(buffers[1], np.dtype(np.int64 if wide else np.int32), count=count)[values.offset :]
    offsets = offsets.astype(np.int64)
    data = np.frombuffer(buffers[2], np.uint8) if buffers[2] is not None else np.empty(0, np.uint8)
    return offsets[:-1], offsets[1:], data
