"""Stamps, against `struct`."""

from __future__ import annotations

import struct

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker_spark.audit.stamps import parse_stamps


def stamp(producer: int, sequence: int, filler: bytes) -> bytes:
    return struct.pack(">QQq", producer, sequence, 1_700_000_000_000_000) + filler


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.none(),
            st.binary(max_size=30),
            st.builds(stamp, st.integers(0, 2**64 - 1), st.integers(0, 2**40), filler=st.binary(max_size=9)),
        )
    ),
    st.integers(0, 5),
)
def test_stamps_are_read_as_struct_reads_them(values: list[bytes | None], skipped: int) -> None:
    array = pa.array(values, pa.binary()).slice(min(skipped, len(values)))
    wanted = [
        struct.unpack(">QQq", value[:24]) for value in array.to_pylist() if value is not None and len(value) >= 24
    ]
    wanted = [(producer, struct.unpack(">q", struct.pack(">Q", sequence))[0], at) for producer, sequence, at in wanted]
    stamps = parse_stamps(array)
    found = zip(stamps.producer.tolist(), stamps.sequence.tolist(), stamps.sent_us.tolist(), strict=True)
    assert list(found) == wanted
    if stamps.stamped is not None:
        assert int(stamps.stamped.sum()) == len(wanted)
