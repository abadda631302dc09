"""What releases of Kafka bring: the level of each feature, and the metadata.version that a level needs.

Owns the table, which is that of Kafka 4.3's tools, and their error messages. Must not know which levels this broker
supports: the commands work with any Kafka.
"""

from __future__ import annotations

from typing import NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.metadata.metadata_versions import NAMES, level_of


class _Level(NamedTuple):
    """A level above 0 of a feature."""

    since: int | None
    """The metadata.version from which a release uses it by default; None: the same as the next level."""
    needs: int | None = None
    """The lowest metadata.version that allows it."""


LEVELS: dict[str, tuple[_Level, ...]] = {
    "kraft.version": (_Level(21),),
    "transaction.version": (_Level(None), _Level(24)),
    "group.version": (_Level(22),),
    "eligible.leader.replicas.version": (_Level(26, needs=23),),
    "share.version": (_Level(28),),
    "streams.version": (_Level(29),),
}
"""Levels 1, 2 and so on by feature, in the order in which Kafka's tool prints them."""

LATEST = "4.3-IV0"
"""The newest production release."""


def parse_release(text: str) -> int:
    """Return the metadata.version of a release, as 4.0 or 4.0-IV3. Raises CommandError."""
    level = level_of(text)
    if level is None:
        known = ", ".join(NAMES[level] for level in sorted(NAMES))
        raise CommandError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {known}")
    return level


def release_name(metadata_version: int) -> str:
    """Return the name of a metadata.version."""
    return NAMES[metadata_version]


def default_level(feature: str, metadata_version: int) -> int:
    """Return the level of a feature in a new cluster of this metadata.version."""
    reached = [
        number
        for number, level in enumerate(LEVELS[feature], 1)
        if level.since is not None and level.since <= metadata_version
    ]
    return max(reached, default=0)


def needs(feature: str, level: int) -> int | None:
    """Return the metadata.version that a level requires, None without one. Raises CommandError."""
    if feature not in LEVELS:
        raise CommandError(f"Unknown feature: {feature}")
    if not 0 <= level <= len(LEVELS[feature]):
        raise CommandError(f"No feature:{feature} with feature level {level}")
    return LEVELS[feature][level - 1].needs if level else None
