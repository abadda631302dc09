from __future__ import annotations

import pytest

from pybroker.streams.state.versions import SegmentVersions, Version


@pytest.mark.parametrize("versions", [[], [(5, b"a")], [(-1, None), (0, b""), (7, b"x" * 300), (8, None)]])
def test_versions_survive_their_bytes(versions: list[Version]) -> None:
    found = SegmentVersions.from_bytes(SegmentVersions(versions, 9).to_bytes())
    assert (found.versions, found.next_timestamp) == (versions, 9)
