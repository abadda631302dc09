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
    read = [struct.unpack(">Qqq", value[:24]) for value in array.to_pylist() if value is not None and len(value) >= 24]
    wanted = [one for one in read if one[1] >= 0 and 946_684_800_000_000 <= one[2] < 1 << 53]
    stamps = parse_stamps(array)
    found = zip(stamps.producer.tolist(), stamps.sequence.tolist(), stamps.sent_us.tolist(), strict=True)
    assert list(found) == wanted
    if stamps.stamped is not None:
        assert int(stamps.stamped.sum()) == len(wanted)


def test_records_of_other_programs_have_no_stamp() -> None:
    values = [b"x" * 100, stamp(7, 3, b""), b'{"id": 1, "name": "of nobody"}', stamp(7, 4, b"rest")]
    stamps = parse_stamps(pa.array(values, pa.binary()))
    assert stamps.sequence.tolist() == [3, 4]
    assert stamps.stamped is not None
    assert stamps.stamped.tolist() == [False, True, False, True]
