"""The levels of metadata.version, and their names after Kafka's releases.

Owns the names. Must not know the supported levels: those are in `features`.
"""

from __future__ import annotations

NAMES: dict[int, str] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
    31: "4.4-IV0",
}
"""The name of each level."""


def level_of(release: str) -> int | None:
    """Return the level of a name such as `4.0-IV3`, or the last level of a release such as `4.0` or `4.0.1`.

    Returns None for an unknown release.
    """
    for level, name in NAMES.items():
        if name == release:
            return level
    short = ".".join(release.split(".")[:2])
    levels = [level for level, name in NAMES.items() if name.partition("-")[0] == short]
    return max(levels) if levels and "-" not in release else None
