"""The clients of a simulated group, which behave as Kafka's do.

A member of KIP-848 gives back what it is not to have before it takes more and says what it has; one of the classic
protocol joins when it is asked to, and the leader among them assigns. Both commit what they have read. Answers to them
are lost, and their schedule has them stall, crash, leave, come back and change their minds.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from pybroker.coordinator.group import events
from pybroker.coordinator.group.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from pybroker.coordinator.group.events import ConsumerHeartbeat
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.runtime.errors import CoordinatorError, CoordinatorNotAvailableError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from pybroker.protocol.messages.consumer_protocol import decode_framed, encode_framed
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from pybroker.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from pybroker.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedPartitions
from pybroker.protocol.messages.heartbeat import HeartbeatRequest
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pybroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.simulation.consumer_world import GROUP, REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, Partitions, World

COMMIT_VERSION = 9

_CLIENT = events.Client("client", "/127.0.0.1")
_BEGIN_ANEW = (FencedInstanceIdError, FencedMemberEpochError, GroupIdNotFoundError, UnknownMemberIdError)


def commit_next(world: World, member_id: str, epoch: int, owned: Partitions) -> None:
    """Commit the next offset of a partition, as its reader; what was acknowledged is remembered.

    A commit that comes late may be of an epoch that has passed, and of what is another's by now.
    """
    partition = min(owned)
    offset = world.invariants.acknowledged.get(partition, 0) + 1
    name, index = partition
    topic = OffsetCommitRequestTopic(
        name=name,
        topic_id=world.topics.by_name[name].topic_id,
        partitions=[OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)],
    )
    request = OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=epoch, member_id=member_id, topics=[topic]
    )
    try:
        world.submit(events.CommitOffsets(request, COMMIT_VERSION))
    except CoordinatorError:
        return
    world.invariants.acknowledged[partition] = offset
    group = world.group
    assert member_id in group.members, "somebody has committed who is no member"
    if isinstance(group, ConsumerGroup):
        member = group.members[member_id]
        may = epoch == member.epoch or index in member.has.get(topic.topic_id, ())
        assert may, "somebody has committed what is another's"


class Consumer:
    """A client of the consumer protocol."""

    def __init__(self, world: World, member_id: str, instance_id: str | None = None) -> None:
        self.world = world
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.names: list[str] | None = ["a"]
        self.regex: str | None = None
        self.owned: Partitions = set()
        self.is_set: Partitions | None = None
        self.reports_all = True
        # What it had and the epoch that it was in, before it had what it has.
        self.was: tuple[int, Partitions] = (0, set())

    @property
    def has(self) -> Partitions:
        """What it reads from."""
        return self.owned

    @property
    def is_at_rest(self) -> bool:
        """Whether it has done all that it was asked to."""
        return self.epoch > 0 and self.is_set == self.owned and not self.reports_all

    def is_fenced(self, group: ConsumerGroup) -> bool:
        """Return whether the coordinator has given up on it, and what it has may be another's."""
        member = group.members.get(self.member_id)
        return member is None or self.epoch not in (member.epoch, member.previous_epoch)

    def change_mind(self) -> None:
        """Subscribe to something else."""
        random = self.world.random
        self.names, self.regex = random.choice(
            [(["a"], None), (["b"], None), (["a", "b"], None), ([], "[ab]"), ([], "c.*|a"), (["b"], "a")]
        )
        self.reports_all = True

    def step(self, *, slow: bool = False, loses_response: bool = False) -> None:
        """Do what there is to do, and heartbeat."""
        if self.epoch and self.is_set is not None and self.is_set != self.owned and not slow:
            self.was = self.epoch, self.owned
            self.owned = set(self.is_set)
            self.reports_all = True
            self.world.changes += 1
        try:
            reply = self.world.submit(self._request(self.epoch))
        except (UnreleasedInstanceIdError, CoordinatorNotAvailableError):
            return
        except _BEGIN_ANEW:
            self._begin_anew()
            return
        self.reports_all = loses_response
        if loses_response:
            return
        assert reply.member_epoch >= self.epoch
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self.is_set = {
                (self.world.topics.name_by_id[topic.topic_id], partition)
                for topic in reply.assignment.topic_partitions
                for partition in topic.partitions
            }

    def commit(self) -> None:
        """Commit how far it is in one partition."""
        epoch, owned = self.was if self.world.random.random() < 0.3 else (self.epoch, self.owned)
        if owned:
            commit_next(self.world, self.member_id, epoch, owned)

    def misremember(self) -> None:
        """Heartbeat in an epoch that cannot be its own, as one would that was set back: it is fenced."""
        group = self.world.group
        member = group.members.get(self.member_id) if isinstance(group, ConsumerGroup) else None
        if member is None:
            return
        wrong = self.world.random.choice([member.epoch + 1, member.previous_epoch - 1])
        if wrong > 0:
            try:
                self.world.submit(self._request(wrong))
            except FencedMemberEpochError:
                return
            raise AssertionError("an epoch that cannot be is taken")

    def wants(self, name: str) -> bool:
        """Return whether it is subscribed to a topic."""
        return name in (self.names or ()) or (self.regex is not None and re.fullmatch(self.regex, name) is not None)

    def leave(self) -> None:
        """Leave; a static member perhaps for a while."""
        for_a_while = self.instance_id is not None and self.world.random.random() < 0.7
        if self.epoch:
            with suppress(*_BEGIN_ANEW, CoordinatorNotAvailableError):
                self.world.submit(self._request(-2 if for_a_while else -1))
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.owned, self.is_set, self.epoch, self.reports_all = set(), None, 0, True

    def _request(self, epoch: int) -> ConsumerHeartbeat:
        by_topic: dict[bytes, list[int]] = {}
        for name, partition in sorted(self.owned):
            by_topic.setdefault(self.world.topics.by_name[name].topic_id, []).append(partition)
        all_of_it = self.reports_all or epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if all_of_it else -1,
            subscribed_topic_names=self.names if all_of_it else None,
            subscribed_topic_regex=(self.regex or "") if all_of_it else None,
            topic_partitions=[
                TopicPartitions(topic_id=topic, partitions=partitions) for topic, partitions in by_topic.items()
            ]
            if all_of_it
            else None,
        )
        return ConsumerHeartbeat(request, 1, _CLIENT, "unused")


_CARRY_ON = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REBALANCE_IN_PROGRESS,
)


class ClassicConsumer:
    """A client of the classic protocol with an eager or a cooperative assignor."""

    def __init__(self, world: World, *, cooperative: bool) -> None:
        self.world = world
        self.cooperative = cooperative
        self.member_id = ""
        self.generation = -1
        self.names = ["a"]
        self.owned: Partitions = set()
        self.waits = False
        self.joined: Any = None
        self.needs_join = True
        # What it wanted when it last joined, and what that looked like.
        self.joined_for: list[tuple[str, int]] = []

    @property
    def has(self) -> Partitions:
        """What it reads from."""
        return self.owned

    @property
    def is_at_rest(self) -> bool:
        """Whether it has done all that it was asked to."""
        return not (self.waits or self.needs_join or self.joined) and self.joined_for == self._interest()

    def wants(self, name: str) -> bool:
        """Return whether it is subscribed to a topic."""
        return name in self.names

    def is_fenced(self, group: ConsumerGroup) -> bool:
        """Return whether the coordinator has given up on it, and what it has may be another's."""
        return self.member_id not in group.members or self.member_id in self.world.fenced

    def change_mind(self) -> None:
        """Subscribe to something else."""
        self.names = self.world.random.choice([["a"], ["b"], ["a", "b"]])

    def step(self, *, slow: bool = False, loses_response: bool = False) -> None:
        """Join, ask for the assignment or heartbeat, whatever is next."""
        if self.waits or slow:
            return
        try:
            if self.needs_join or self.joined_for != self._interest():
                self._join()
            elif self.joined is not None:
                self._sync(self.joined)
            else:
                self._heartbeat()
        except CoordinatorError as error:
            self._failed(error.code)

    def commit(self) -> None:
        """Commit how far it is in one partition."""
        if self.owned and not self.waits and self.joined is None:
            commit_next(self.world, self.member_id, self.generation, self.owned)

    def leave(self) -> None:
        """Leave."""
        if self.member_id:
            member = MemberIdentity(member_id=self.member_id)
            with suppress(UnknownMemberIdError, CoordinatorNotAvailableError):
                self.world.submit(events.LeaveGroup(LeaveGroupRequest(group_id=GROUP, members=[member])))
        self._failed(ErrorCode.UNKNOWN_MEMBER_ID)

    def _interest(self) -> list[tuple[str, int]]:
        topics = self.world.topics.by_name
        return [(name, topics[name].partitions) for name in self.names]

    def _join(self) -> None:
        self.joined_for = self._interest()
        if not self.cooperative:
            self.owned = set()
        subscription = ConsumerProtocolSubscription(
            topics=self.names,
            owned_partitions=[
                OwnedPartitions(topic=name, partitions=[p for n, p in sorted(self.owned) if n == name])
                for name in sorted({name for name, _ in self.owned})
            ],
        )
        name = "cooperative-sticky" if self.cooperative else "range"
        metadata = encode_framed(subscription, 1)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata),
                JoinGroupRequestProtocol(name="any", metadata=metadata),
            ],
        )
        self.waits = True
        fresh = f"{self.world.random.getrandbits(64):x}"
        try:
            reply = self.world.submit(events.JoinGroup(request, 9, _CLIENT, fresh), self._joined)
        except CoordinatorError:
            self.waits = False
            raise
        if reply is not None:
            self._joined(reply)

    def _joined(self, reply: Any) -> None:
        self.waits = False
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
        elif reply.error_code:
            self._failed(ErrorCode(reply.error_code))
        else:
            self.member_id, self.generation = reply.member_id, reply.generation_id
            self.joined, self.needs_join = reply, False

    def _sync(self, joined: Any) -> None:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=self._assign(joined) if joined.leader == self.member_id else [],
        )
        self.waits = True
        try:
            reply = self.world.submit(events.SyncGroup(request), self._synced)
        except CoordinatorError:
            self.waits = False
            raise
        if reply is not None:
            self._synced(reply)

    def _synced(self, reply: Any) -> None:
        self.waits = False
        if reply.error_code:
            self._failed(ErrorCode(reply.error_code))
            return
        self.joined = None
        assignment = decode_framed(ConsumerProtocolAssignment, reply.assignment) if reply.assignment else None
        assigned = {
            (topic.topic, partition)
            for topic in (assignment.assigned_partitions if assignment else [])
            for partition in topic.partitions
        }
        self.world.fenced.discard(self.member_id)
        revoked = self.owned - assigned
        self.owned = assigned
        self.world.changes += 1
        self.needs_join = bool(revoked) and self.cooperative

    def _assign(self, joined: Any) -> list[SyncGroupRequestAssignment]:
        """Assign round-robin; what a member still owns and another is to have goes to nobody for now."""
        subscriptions = {m.member_id: decode_framed(ConsumerProtocolSubscription, m.metadata) for m in joined.members}
        owners = {
            (topic.topic, partition): member_id
            for member_id, subscription in subscriptions.items()
            for topic in subscription.owned_partitions
            for partition in topic.partitions
        }
        shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in subscriptions}
        turn = 0
        for name, info in sorted(self.world.topics.by_name.items()):
            readers = [member_id for member_id, s in sorted(subscriptions.items()) if name in s.topics]
            for partition in range(info.partitions if readers else 0):
                reader = readers[turn % len(readers)]
                turn += 1
                if owners.get((name, partition), reader) == reader or joined.protocol_name == "range":
                    shares[reader].setdefault(name, []).append(partition)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=encode_framed(
                    ConsumerProtocolAssignment(
                        assigned_partitions=[Assigned(topic=name, partitions=ps) for name, ps in share.items()]
                    ),
                    1,
                ),
            )
            for member_id, share in shares.items()
        ]

    def _heartbeat(self) -> None:
        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.member_id)
        reply = self.world.submit(events.Heartbeat(request))
        if reply.error_code:
            self._failed(ErrorCode(reply.error_code))

    def _failed(self, code: ErrorCode) -> None:
        self.joined, self.needs_join = None, True
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.owned, self.member_id, self.generation = set(), "", -1
        elif code is ErrorCode.ILLEGAL_GENERATION:
            self.owned, self.generation = set(), -1
        else:
            assert code in _CARRY_ON, code
