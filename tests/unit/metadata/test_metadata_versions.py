from __future__ import annotations

import pytest

from pybroker.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from pybroker.metadata.metadata_versions import NAMES, level_of


@pytest.mark.parametrize(
    ("release", "level"),
    [("4.0-IV3", 25), ("4.0", 25), ("4.0.1", 25), ("3.3", 7), ("4.0-IV9", None), ("4", None), ("", None)],
)
def test_a_release_stands_for_its_last_level(release: str, level: int | None) -> None:
    assert level_of(release) == level


def test_every_supported_level_has_a_name() -> None:
    lowest, highest = SUPPORTED_FEATURES[METADATA_VERSION]
    assert set(range(lowest, highest + 1)) <= set(NAMES)
