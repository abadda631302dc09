"""The interface of an assignor, and its input for each member.

Owns these two types. Contains no algorithm.
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
    """The subscription of one member, from its JoinGroup request."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    """The generation of its owned partitions; None where the subscription lacks it."""
    instance_id: str | None = None
    """Set by a static member (KIP-345)."""
    rack: str | None = None
    """Its rack (`client.rack`, KIP-881); None where the subscription lacks it."""


class Assignor(Protocol):
    """Assigns partitions to members. `members` has the order of the JoinGroup response."""

    @property
    def name(self) -> str:
        """The protocol name, which every member of a group must support."""

    @property
    def cooperative(self) -> bool:
        """Whether members keep their partitions while the group rebalances (KIP-429)."""

    def user_data(self) -> bytes | None:
        """Return the user data of this member's subscription, for the leader's assignor."""

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """Return each member's partitions. `partitions` has the partition counts of existing subscribed topics."""

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int, /) -> None:
        """Receive this member's new assignment and its generation."""


@runtime_checkable
class RackAware(Protocol):
    """The interface of an assignor that uses racks (KIP-881)."""

    def assign_by_racks(
        self, partitions: Mapping[str, int], members: Mapping[str, GroupMember], racks: Racks
    ) -> Assignment:
        """As `assign`, with the racks of the partitions' replicas."""


class StatelessAssignor:
    """Base of assignors that send no user data and store no assignment."""

    cooperative = False

    def user_data(self) -> bytes | None:
        """None."""

    def on_assignment(self, _partitions: Sequence[TopicPartition], _generation: int, /) -> None:
        """Do nothing."""


def by_instance(item: tuple[str, GroupMember]) -> tuple[bool, str]:
    """Return a sort key: static members first, by instance id, so that a restart does not change other assignments."""
    member_id, member = item
    return (True, member_id) if member.instance_id is None else (False, member.instance_id)
