"""GroupDraft: a classic group during a decision, and the records, replies and timers of the decision.

Owns the common steps of all decisions: members join, leave and change, requests get responses, timers are set. Every
step changes only the draft; `outcome` builds the new value of the group. Decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.coordinator.group.classic.group import (
    ClassicGroup,
    join_timer,
    session_timer,
    subscribed_topics,
    sync_timer,
)
from pybroker.coordinator.group.classic.members import ClassicMember
from pybroker.coordinator.group.classic.transitions import CLASSIC_LIFE, ClassicState, ClassicStep
from pybroker.coordinator.group.events import SessionOver
from pybroker.coordinator.group.group_change import GroupChange, Record
from pybroker.coordinator.group.ids import Generation
from pybroker.coordinator.group.records import GroupRecord
from pybroker.machine.machine import Delayed, DelayedReply, Outcome, Timer
from pybroker.protocol.messages.group_records.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from pybroker.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pybroker.coordinator.group.ids import InstanceId, MemberId
    from pybroker.coordinator.group.settings import GroupSettings
    from pybroker.protocol.messages.sync_group import SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]


class GroupDraft:
    """A decision in progress."""

    def __init__(self, group: ClassicGroup, settings: GroupSettings, now: int) -> None:
        self.id = group.id
        self.settings = settings
        self.now = now
        self.state = group.state
        self.before = group.before
        self.since_ms = group.since_ms
        self.generation = group.generation
        self.protocol_type = group.protocol_type
        self.protocol = group.protocol
        self.leader = group.leader
        self.members = group.members.fork()
        self.new_member_added = group.new_member_added
        self.subscribed = group.subscribed
        self.why = ""
        self._records: list[Record] = []
        self._timers: list[Timer] = []
        self._responses: list[DelayedReply] = []

    def outcome(self, reply: Any) -> Outcome[Record, Any]:
        """Return the outcome of the decision."""
        group = ClassicGroup(
            id=self.id,
            state=self.state,
            before=self.before,
            since_ms=self.since_ms,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader,
            members=self.members,
            new_member_added=self.new_member_added,
            subscribed=self.subscribed,
        )
        records = (*self._records, GroupChange(self.id, group, self.why))
        return Outcome(records, reply, tuple(self._timers), tuple(self._responses))

    # Queries.

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols can join.

        A group without members accepts any protocols of its type, even during a rebalance, as in Kafka: there is no
        member to disagree.
        """
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and protocols)
        return self.protocol_type == protocol_type and self.members.supports_any(name for name, _ in protocols)

    def select_protocol(self) -> str:
        """Count votes: each member votes for its first protocol that all support; a tie goes to the earlier vote.

        Raises `ValueError` if the members have none in common.
        """
        votes = self.members.votes()
        most = max(votes.values())
        best = {name for name, count in votes.items() if count == most}
        if len(best) > 1:
            for member in self.members.in_order():
                vote = next(name for name, _ in member.protocols if name in votes)
                if vote in best:
                    return vote
        return best.pop()

    # Members.

    def add_member(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a member; the first one becomes leader, and sets the group's protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members.put(member)
        self.members.mark_joined(member.id)

    def remove_member(self, member_id: MemberId) -> None:
        """Remove a member, or an assigned id. If it was the leader, the member that joined first becomes leader."""
        self.members.remove(member_id)
        if self.leader == member_id:
            first = self.members.first()
            self.leader = None if first is None else first.id
        self.cancel(session_timer(self.id, member_id))

    def change_member(self, member_id: MemberId, **changes: Any) -> ClassicMember:
        """Replace a member by a changed one."""
        changed = msgspec.structs.replace(self.members[member_id], **changes)
        self.members.put(changed)
        return changed

    def rename_static_member(self, old: MemberId, new: MemberId) -> None:
        """Give a static member a new id; the caller fences the delayed requests of the old id."""
        was_to_sync = self.members.is_to_sync(old)
        member = msgspec.structs.replace(self.members[old], id=new, awaiting_join=False, awaiting_sync=False)
        self.members.rename(old, member)
        if self.leader == old:
            self.leader = new
        if was_to_sync:
            self.members.mark_synced(old)
            self.members.expect_sync(new)
        self.cancel(session_timer(self.id, old))

    # States.

    def step(self, what: ClassicStep) -> None:
        """Apply a transition of the table; raises `TransitionError`."""
        following = CLASSIC_LIFE.following(self.state, what)
        self.before, self.state, self.since_ms = self.state, following, self.now

    def begin_generation(self) -> None:
        """Start the next generation with the current members."""
        self.generation = Generation(self.generation + 1)
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed = subscribed_topics(self.protocol_type, self.protocol, self.members.in_order())
        self.step(ClassicStep.JOINED if self.members else ClassicStep.ALL_LEFT)
        self._await_no_syncs()

    # Effects of the decision.

    def delay_join(self, member_id: MemberId) -> Delayed:
        """Delay a member's JoinGroup."""
        self.change_member(member_id, awaiting_join=True)
        return Delayed(_join_reply(self.id, member_id))

    def delay_sync(self, member_id: MemberId) -> Delayed:
        """Delay a member's SyncGroup."""
        self.change_member(member_id, awaiting_sync=True)
        return Delayed(_sync_reply(self.id, member_id))

    def complete_join(self, member_id: MemberId, response: JoinGroupResponse) -> None:
        """Complete a member's delayed JoinGroup."""
        if self.members[member_id].awaiting_join:
            self._responses.append(DelayedReply(_join_reply(self.id, member_id), response))
            self.change_member(member_id, awaiting_join=False)

    def begin_syncs(self) -> None:
        """Complete every delayed JoinGroup of the new generation, and expect a SyncGroup of each member."""
        now, responses, timers = self.now, self._responses, self._timers
        for member in self.members.in_order():
            member_id = member.id
            if member.awaiting_join:
                responses.append(DelayedReply(_join_reply(self.id, member_id), self.joined(member_id)))
            timers.append(
                Timer(
                    session_timer(self.id, member_id),
                    now + member.session_timeout_ms,
                    SessionOver(self.id, member_id),
                )
            )
            self.members.put(msgspec.structs.replace(member, awaiting_join=False, is_new=False))
            self.members.expect_sync(member_id)

    def complete_sync(self, member_id: MemberId, response: SyncGroupResponse) -> bool:
        """Complete a member's delayed SyncGroup; return whether there was one."""
        if not self.members[member_id].awaiting_sync:
            return False
        self._responses.append(DelayedReply(_sync_reply(self.id, member_id), response))
        self.change_member(member_id, awaiting_sync=False)
        return True

    def prolong_session(self, member_id: MemberId, timeout_ms: int | None = None) -> None:
        """Restart a member's session timeout."""
        timeout_ms = self.members[member_id].session_timeout_ms if timeout_ms is None else timeout_ms
        self.set_timer(session_timer(self.id, member_id), timeout_ms, SessionOver(self.id, member_id))

    def set_timer(self, key: Hashable, delay_ms: int, event: Any) -> None:
        """Schedule an event."""
        self._timers.append(Timer(key, self.now + delay_ms, event))

    def cancel(self, key: Hashable) -> None:
        """Cancel a timer."""
        self._timers.append(Timer(key, None))

    def end_join_phase(self) -> None:
        """Stop waiting for members to join."""
        self.cancel(join_timer(self.id))

    def end_sync_phase(self) -> None:
        """Stop waiting for members' SyncGroups."""
        self._await_no_syncs()
        self.cancel(sync_timer(self.id))

    def _await_no_syncs(self) -> None:
        for member_id in self.members.pending_syncs:
            self.members.mark_synced(member_id)

    def write(self, assignments: Mapping[MemberId, bytes]) -> None:
        """Write a record of the group with these assignments."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=-1 if self.since_ms is None else self.since_ms,
            members=[
                MemberMetadata(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=b"" if self.protocol is None else member.metadata(self.protocol),
                    assignment=assignments[member.id],
                )
                for member in self.members.in_order()
            ],
        )
        self._records.append(GroupRecord(GroupMetadataKey(group=self.id), value))

    def write_new(self) -> None:
        """Write a record that the group exists (Kafka's empty group metadata)."""
        since_ms = -1 if self.since_ms is None else self.since_ms
        value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=since_ms)
        self._records.append(GroupRecord(GroupMetadataKey(group=self.id), value))

    def joined(self, member_id: MemberId, *, skip_assignment: bool = False) -> JoinGroupResponse:
        """Return the response to a member of the current generation; the leader receives the list of all members."""
        protocol = self.protocol
        listed = self.members.in_order() if member_id == self.leader else []
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=protocol,
            leader=self.leader or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    metadata=b"" if protocol is None else member.metadata(protocol),
                )
                for member in listed
            ],
        )


def build_member(
    member_id: MemberId,
    instance_id: InstanceId | None,
    client: tuple[str, str],
    timeouts_ms: tuple[int, int],
    protocols: Protocols,
) -> ClassicMember:
    """Return a new member; `timeouts_ms` are its rebalance timeout and its session timeout."""
    return ClassicMember(
        id=member_id,
        instance_id=instance_id,
        client_id=client[0],
        client_host=client[1],
        rebalance_timeout_ms=timeouts_ms[0],
        session_timeout_ms=timeouts_ms[1],
        protocols=protocols,
        is_new=True,
    )


def _join_reply(group_id: str, member_id: str) -> Hashable:
    return "join", group_id, member_id


def _sync_reply(group_id: str, member_id: str) -> Hashable:
    return "sync", group_id, member_id
