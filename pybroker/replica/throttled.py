"""Which replicas of a broker are throttled, by their topics' settings (KIP-73).

Computed from a topic's configuration. The rate limit of throttled replicas is a broker setting and part of the
replication settings (`sources`).
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
    """Throttle the records that it sends."""
    follower: bool
    """Throttle the records that it fetches."""


def throttled_sides(settings: TopicConfig, index: int, node_id: int) -> ThrottledSides:
    """Return the sides on which a broker's replica of a partition is throttled."""
    replica = f"{index}:{node_id}"
    return ThrottledSides(
        _names(settings.leader_replication_throttled_replicas, replica),
        _names(settings.follower_replication_throttled_replicas, replica),
    )


def _names(throttled: Sequence[str], replica: str) -> bool:
    # The setting may contain leading zeros, as Kafka parses numbers.
    return "".join(throttled) == _ALL or replica in {_plain(item) for item in throttled if item}


def _plain(item: str) -> str:
    # Compared as text: the setting may have more digits than `int` parses.
    index, broker = item.split(":")
    return f"{index.lstrip('0') or '0'}:{broker.lstrip('0') or '0'}"
