"""ClassicGroup: one group of the classic protocol as an immutable value, with its queries.

Owns the type, and the checks that offsets and administration need from every group. Decides nothing about joining.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import TYPE_CHECKING, ClassVar

import msgspec

from pybroker.coordinator.group.classic.members import EMPTY, ClassicMember, ClassicMembers
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pybroker.coordinator.group.ids import Generation, GroupId, MemberId
from pybroker.coordinator.group.records import GroupRecord, build_group_tombstone
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.messages.consumer_protocol import decode_framed
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Callable

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers; the broker knows no subscriptions of other groups (`connect` ...)."""

MOST_ELEMENTS = 50_000
"""Maximum number of elements in a member's subscription or assignment, the default limit of a request. More is not
decoded."""


class ClassicGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One group. Its collections are never modified."""

    type_name: ClassVar[str] = "classic"

    id: GroupId
    state: ClassicState = ClassicState.EMPTY
    before: ClassicState = ClassicState.DEAD
    """The previous state: a rebalance that began in Empty waits for the initial delay."""
    since_ms: int | None = None
    """When it entered its state; None if the group's record lacks it."""
    generation: Generation = Generation(0)
    protocol_type: str | None = None
    protocol: str | None = None
    """The chosen protocol; None until a generation has members."""
    leader: MemberId | None = None
    members: ClassicMembers = EMPTY
    new_member_added: bool = False
    """Whether a member joined during the initial delay."""
    subscribed: frozenset[str] | None = None
    """Topics that members subscribe to; None if they are unknown."""

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it is in the state Empty."""
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether its members are consumers."""
        return self.protocol_type == CONSUMER_PROTOCOL

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raise an error if this is no member: it is unknown, or another member has its instance id."""
        if instance_id is not None:
            member = self.members.static_member(instance_id)
            if member is None:
                raise UnknownMemberIdError
            if member.id != member_id:
                raise FencedInstanceIdError
        if MemberId(member_id) not in self.members:
            raise UnknownMemberIdError

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, _version: int
    ) -> Callable[[str, bytes, int], None] | None:
        """Raise an error if a member may not commit. A client without a group may, while the group has no members."""
        if generation < 0 and self.state is ClassicState.EMPTY:
            return None
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise IllegalGenerationError
        elif self.state is not ClassicState.EMPTY:
            raise UnknownMemberIdError
        if self.state is ClassicState.COMPLETING_REBALANCE:
            raise RebalanceInProgressError
        return None

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> Callable[[str, bytes, int], None] | None:
        """Raise an error if a member may not commit in a transaction: an older generation may not (KIP-447)."""
        if generation < 0 and self.state is ClassicState.EMPTY:
            return None
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise IllegalGenerationError
        return None

    def check_fetch(self, _member_id: str | None, _member_epoch: int) -> None:
        """Do nothing: any client may fetch offsets."""

    def check_offset_delete(self) -> None:
        """Raise an error if offsets may not be deleted: subscriptions are known for consumers only."""
        if not self.is_empty and not self.uses_consumer_protocol:
            raise NonEmptyGroupError

    def check_delete(self) -> None:
        """Raise an error if the group may not be deleted."""
        if not self.is_empty:
            raise NonEmptyGroupError

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic; if subscriptions are unknown, whether one may."""
        return self.uses_consumer_protocol if self.subscribed is None else topic in self.subscribed

    def retention_begins(self, committed_ms: int) -> int | None:
        """Return when the retention of an offset committed at that time begins (KIP-211); None while it is kept."""
        if self.protocol_type is None:
            return committed_ms
        if self.is_empty:
            return committed_ms if self.since_ms is None else self.since_ms
        knows_topics = self.uses_consumer_protocol and self.subscribed is not None
        return committed_ms if knows_topics and self.state is ClassicState.STABLE else None

    def build_tombstones(self) -> Iterable[GroupRecord]:
        """Return the tombstone of the group."""
        return (build_group_tombstone(self.id),)

    def timer_keys(self) -> Iterable[Hashable]:
        """Yield the keys of timers that the group may have set."""
        yield join_timer(self.id)
        yield sync_timer(self.id)
        for member_id in (*self.members, *self.members.pending_joins):
            yield session_timer(self.id, member_id)


def session_timer(group_id: str, member_id: str) -> Hashable:
    """Return the timer key of a member's session."""
    return "session", group_id, member_id


def join_timer(group_id: str) -> Hashable:
    """Return the timer key of a rebalance's join phase."""
    return "join", group_id


def sync_timer(group_id: str) -> Hashable:
    """Return the timer key of a rebalance's sync phase."""
    return "sync", group_id


def subscribed_topics(
    protocol_type: str | None, protocol: str | None, members: Collection[ClassicMember]
) -> frozenset[str] | None:
    """Return the topics in the members' subscriptions; None if they are unknown.

    Subscriptions are decoded as version 0, as in Kafka: clients that encode later fields differently are understood.
    """
    if protocol_type != CONSUMER_PROTOCOL:
        return None
    if not members:
        return frozenset()
    if protocol is None:
        return None
    try:
        # Most members have the same subscription.
        wanted = [
            decode_framed(ConsumerProtocolSubscription, metadata, newest=0, most_elements=MOST_ELEMENTS)
            for metadata in {member.metadata(protocol) for member in members}
        ]
    except (MalformedMessage, KeyError):
        return None
    return frozenset(topic for subscription in wanted for topic in subscription.topics)
