"""Which replicas of a broker are throttled, by their topics' settings (KIP-73).

Arithmetic on a topic's settings. How much throttled replicas may take is the broker's setting, and goes with those of
replication (`sources`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.config.topic import TopicConfig

_ALL = "*"


class ThrottledSides(NamedTuple):
    """The sides on which a partition's replica here is throttled."""

    leader: bool
    """What it sends."""
    follower: bool
    """What it fetches."""


def throttled_sides(settings: TopicConfig, index: int, node_id: int) -> ThrottledSides:
    """Return the sides on which a broker's replica of a partition is throttled."""
    replica = f"{index}:{node_id}"
    return ThrottledSides(
        _names(settings.leader_replication_throttled_replicas, replica),
        _names(settings.follower_replication_throttled_replicas, replica),
    )


def _names(throttled: Sequence[str], replica: str) -> bool:
    # Leading zeros are allowed in the setting, as Kafka reads numbers.
    return "".join(throttled) == _ALL or replica in {_plain(item) for item in throttled if item}


def _plain(item: str) -> str:
    # As text: a topic's setting may have more digits than `int` takes.
    index, broker = item.split(":")
    return f"{index.lstrip('0') or '0'}:{broker.lstrip('0') or '0'}"
