"""What an assignor is: its face, and what it gets of each member.

Owns the two types that every assignor is written against. Knows no algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pybroker.client.administration.topics import TopicPartition

Assignment = dict[str, list[TopicPartition]]
"""By member id."""
Racks = Mapping[TopicPartition, frozenset[str]]
"""The racks of each partition's replicas, in sync or not; empty where brokers have none."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """What one member said of itself when it joined."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    """The generation by which it owns them; None where it did not say."""
    instance_id: str | None = None
    """Set by a static member (KIP-345)."""
    rack: str | None = None
    """Where it runs (`client.rack`, KIP-881); None where it did not say."""


class Assignor(Protocol):
    """Decides who reads what. Members are given in the order of the coordinator's answer."""

    @property
    def name(self) -> str:
        """The protocol's name; every member of a group has to know it."""

    @property
    def cooperative(self) -> bool:
        """Whether members keep what they have while the group rebalances (KIP-429)."""

    def user_data(self) -> bytes | None:
        """What this member sends the leader's assignor when it joins."""

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """Who gets what: `partitions` says how many each subscribed topic has; topics that do not exist are missing."""

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int, /) -> None:
        """What this member got, by which generation."""


@runtime_checkable
class RackAware(Protocol):
    """Further arguments of an assignor that uses racks (KIP-881)."""

    def assign_by_racks(
        self, partitions: Mapping[str, int], members: Mapping[str, GroupMember], racks: Racks
    ) -> Assignment:
        """As `assign`, with the racks of the partitions' replicas."""


class StatelessAssignor:
    """The part that assignors without memory share: they send nothing and remember nothing."""

    cooperative = False

    def user_data(self) -> bytes | None:
        """Nothing."""

    def on_assignment(self, _partitions: Sequence[TopicPartition], _generation: int, /) -> None:
        """Nothing is remembered."""


def by_instance(item: tuple[str, GroupMember]) -> tuple[bool, str]:
    """Sort static members first, by instance id, so that a restart changes nothing for the others."""
    member_id, member = item
    return (True, member_id) if member.instance_id is None else (False, member.instance_id)
