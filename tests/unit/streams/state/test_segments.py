from __future__ import annotations

from pathlib import Path

from pybroker.streams.state.segments import Segments
from pybroker.streams.state.store_maps import ENTRIES, StoreMaps


def test_segments_of_a_database_are_found_again_in_order(tmp_path: Path) -> None:
    maps = StoreMaps("s", "window", True)
    maps.open(tmp_path)
    segments = Segments(maps, ENTRIES, 1_000, 10)
    segments.open()
    for number in (3, -2, 0, 300, -1):
        segment = segments.create_if_live(number, 0)
        assert segment is not None
        segment.put(b"k", b"%d" % number)
    maps.commit(None)
    again = Segments(maps, ENTRIES, 1_000, 10)
    again.open()
    found = [(number, segment.get(b"k")) for number, segment in again.between(-100, 10_000)]
    assert found == [(-2, b"-2"), (-1, b"-1"), (0, b"0"), (3, b"3"), (300, b"300")]
    again.remove_expired(1_020)
    assert [number for number, _ in again.between(-100, 10_000)] == [3, 300]
    maps.commit(None)
    last = Segments(maps, ENTRIES, 1_000, 10)
    last.open()
    assert [number for number, _ in last.between(-100, 10_000)] == [3, 300]
    maps.close()
