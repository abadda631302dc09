"""The input of an assignor.

Owns only these types, and the order in which topics are processed. Knows no assignor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Assigned: TypeAlias = "Mapping[bytes, frozenset[int]]"
"""Partitions by topic id; no topic without partitions."""


class MemberSpec(NamedTuple):
    """The properties of a member that an assignor needs."""

    topics: frozenset[bytes]
    """The existing topics that it subscribes to."""
    assigned: Assigned
    """Its target until now."""
    instance_id: str | None = None
    """Set by a static member."""


class GroupSpec(NamedTuple):
    """The properties of a group that an assignor needs."""

    members: Mapping[str, MemberSpec]
    """By member id, in the order in which they are processed."""
    partitions: Mapping[bytes, int]
    """Number of partitions of each subscribed topic."""
    homogeneous: bool
    """Whether all members subscribe to the same topics."""


def topic_order(topic_id: bytes) -> tuple[int, int]:
    """Return the sort key of a topic: the order of Kafka's `Uuid`, two signed halves.

    Kafka iterates over a hash set, whose order only chooses between equivalent results. Here the order is fixed, so
    that every broker computes the same assignment for the same group.
    """
    return int.from_bytes(topic_id[:8], "big", signed=True), int.from_bytes(topic_id[8:], "big", signed=True)
