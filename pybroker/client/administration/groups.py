"""Groups in Admin's arguments and results: members, offsets, states. Plain values, no behaviour."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from pybroker.client.administration.topics import BrokerDescription, TopicPartition


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next offset to read, and the metadata of the committer."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupListing(Struct, frozen=True):
    """A group as its coordinator lists it."""

    group_id: str
    protocol_type: str
    """`consumer`, `connect` ...; empty for a group that only stores offsets."""
    state: str
    """Kafka's name of the state; empty from a broker too old to return it."""
    type: str
    """`classic` or `consumer` (KIP-848); empty from a broker too old to return it."""


class MemberDescription(Struct, frozen=True):
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] | None = None
    """The target assignment; None in the classic protocol."""
    epoch: int | None = None
    """None in the classic protocol."""
    upgraded: bool | None = None
    """Whether the member uses the protocol of KIP-848; None where the broker does not return it."""


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
    """The error message of an unknown group, which is reported as dead."""


Offsets = dict[TopicPartition, OffsetAndMetadata]
