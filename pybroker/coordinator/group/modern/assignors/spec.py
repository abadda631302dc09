"""What an assignor is given.

Owns the shapes alone, and the order in which topics are gone through. Knows no assignor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Assigned: TypeAlias = "Mapping[bytes, frozenset[int]]"
"""Partitions by topic id; no topic without partitions."""


class MemberSpec(NamedTuple):
    """A member, as far as it matters to an assignor."""

    topics: frozenset[bytes]
    """Topics that it is subscribed to and that exist."""
    assigned: Assigned
    """What it is to have until now."""
    instance_id: str | None = None
    """Set by a static member."""


class GroupSpec(NamedTuple):
    """A group, as far as it matters to an assignor."""

    members: Mapping[str, MemberSpec]
    """By member id, in the order in which they are gone through."""
    partitions: Mapping[bytes, int]
    """How many partitions each topic has that a member is subscribed to."""
    homogeneous: bool
    """Whether all members are subscribed to the same topics."""


def topic_order(topic_id: bytes) -> tuple[int, int]:
    """Return where a topic stands among others: the order of Kafka's `Uuid`, two signed halves.

    Kafka goes through a hash set where the order decides nothing but which of two equal results it is; here the order
    is fixed, so that the same group is assigned the same way by every broker.
    """
    return int.from_bytes(topic_id[:8], "big", signed=True), int.from_bytes(topic_id[8:], "big", signed=True)
