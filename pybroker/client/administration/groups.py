"""What clients say of groups: members, offsets, and what a coordinator returns of them. Plain values, no behaviour."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from pybroker.client.administration.topics import BrokerDescription, TopicPartition


class OffsetAndMetadata(NamedTuple):
    """How far a group has read a partition: the next offset to read, and what the committer wanted kept with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupListing(Struct, frozen=True):
    """A group as its coordinator lists it."""

    group_id: str
    protocol_type: str
    """`consumer`, `connect` ...; empty for a group that only keeps offsets."""
    state: str
    """Kafka's name of the state; empty where an old broker does not say."""
    type: str
    """`classic` or `consumer` (KIP-848); empty where an old broker does not say."""


class MemberDescription(Struct, frozen=True):
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] | None = None
    """What it is to have; None in the classic protocol."""
    epoch: int | None = None
    """None in the classic protocol."""
    upgraded: bool | None = None
    """Whether it speaks the protocol of KIP-848; None where the broker does not say."""


class GroupDescription(Struct, frozen=True):
    """A group and its members."""

    group_id: str
    type: str
    state: str
    assignor: str
    coordinator: BrokerDescription
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    target_epoch: int | None = None
    error: str | None = None
    """Why an unknown group is reported as dead, for people."""


Offsets = dict[TopicPartition, OffsetAndMetadata]
