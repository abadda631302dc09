from __future__ import annotations

from pybroker.streams.state.ordered_map import increment


def test_increment_of_only_255_has_no_upper_bound() -> None:
    assert increment(b"a\xff") == b"b"
    assert increment(b"\xff\xff") is None
