"""One coordinator and the clients of one group, of both protocols, under a schedule made from a seed.

Clients behave as Kafka's do: a member of KIP-848 gives back what it is not to have before it takes more and says what
it has, one of the classic protocol joins when it is told to, and the leader among them assigns. On the way answers are
lost, members stall until they are fenced, crash, leave, come back and change their minds; topics come and grow.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from random import Random
from typing import Any

from pybroker.coordinator.group import events
from pybroker.coordinator.group.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupError,
    GroupIdNotFoundError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.heartbeat import ConsumerHeartbeat
from pybroker.coordinator.group.modern.settings import ConsumerGroupSettings, MigrationPolicy
from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.group.settings import GroupSettings
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.machine.machine import Parked, Timer
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
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"
REBALANCE_TIMEOUT_MS = 30_000
SESSION_TIMEOUT_MS = 45_000
SETTINGS = GroupSettings(
    min_session_timeout_ms=6000,
    max_session_timeout_ms=1_800_000,
    initial_rebalance_delay_ms=0,
    max_size=2**31 - 1,
    new_member_join_timeout_ms=300_000,
    offset_metadata_max_bytes=4096,
    offsets_retention_ms=10**12,
    offsets_retention_check_interval_ms=10**12,
    consumer=ConsumerGroupSettings(
        session_timeout_ms=SESSION_TIMEOUT_MS,
        session_timeout_range_ms=(SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS),
        heartbeat_interval_ms=5000,
        heartbeat_interval_range_ms=(5000, 5000),
        max_size=2**31 - 1,
        assignors=("uniform", "range"),
        migration_policy=MigrationPolicy.BIDIRECTIONAL,
        assignment_interval_ms=1000,
        assignment_interval_range_ms=(0, 1000),
        regex_refresh_interval_ms=600_000,
    ),
)

_BEGIN_ANEW = (FencedInstanceIdError, FencedMemberEpochError, GroupIdNotFoundError, UnknownMemberIdError)

Partitions = set[tuple[str, int]]


class World:
    """The coordinator, its timers and parked replies, and the topics."""

    def __init__(self, random: Random, settings: GroupSettings = SETTINGS) -> None:
        self.random = random
        self.now = 1_000_000
        self.topics = Topics()
        self.machine = GroupMachine(settings, lambda: self.topics)
        self.records: list[GroupRecord] = []
        self.timers: dict[Hashable, Timer] = {}
        self.parked: dict[Hashable, Callable[[Any], None]] = {}
        # Members that were taken out and may not know it yet.
        self.fenced: set[str] = set()
        for name in ("a", "b"):
            self.add_topic(name, random.randint(1, 6))

    def add_topic(self, name: str, partitions: int) -> None:
        """Make a topic, or let one grow."""
        known = self.topics.by_name.get(name)
        topic_id = self.random.randbytes(16) if known is None else known.topic_id
        count = partitions if known is None else max(partitions, known.partitions)
        version = self.topics.version + 1 if known is None else self.topics.version
        by_name = {**self.topics.by_name, name: TopicInfo(topic_id, count)}
        self.topics = Topics(by_name, {info.topic_id: name for name, info in by_name.items()}, version)

    def submit(self, event: Any, told: Callable[[Any], None] | None = None) -> Any:
        """Have an event decided on and its records committed; a parked reply is told later, and None returned."""
        outcome = self.machine.handle(event, self.now)
        before = set() if self.group is None else set(self.group.members)
        for record in outcome.records:
            self.machine.apply(record)
            if isinstance(record, GroupRecord):
                self.records.append(record)
        self.fenced |= before - (set() if self.group is None else set(self.group.members))
        for timer in outcome.timers:
            self._set(timer)
        reply = outcome.reply
        if isinstance(reply, Parked):
            assert told is not None
            self.parked[reply.key] = told
            reply = None
        for key, answer in outcome.answers:
            waiting = self.parked.pop(key, None)
            if waiting is not None:
                waiting(answer)
        return reply

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass and timers fire."""
        end = self.now + milliseconds
        while due := [timer for timer in self.timers.values() if (timer.deadline_ms or 0) <= end]:
            timer = min(due, key=lambda timer: timer.deadline_ms or 0)
            del self.timers[timer.key]
            self.now = max(self.now, timer.deadline_ms or 0)
            self.submit(timer.event)
        self.now = end

    def _set(self, timer: Timer) -> None:
        if timer.deadline_ms is None:
            self.timers.pop(timer.key, None)
        elif not (timer.if_absent and timer.key in self.timers):
            self.timers[timer.key] = timer

    @property
    def group(self) -> Any:
        """The group as it is now."""
        return self.machine.state.group(GROUP)


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
        self.told: Partitions | None = None
        self.says_all = True

    @property
    def has(self) -> Partitions:
        """What it reads from."""
        return self.owned

    def change_mind(self) -> None:
        """Subscribe to something else."""
        random = self.world.random
        self.names, self.regex = random.choice(
            [(["a"], None), (["b"], None), (["a", "b"], None), ([], "[ab]"), ([], "c.*|a"), (["b"], "a")]
        )
        self.says_all = True

    def step(self, *, slow: bool = False, loses_answer: bool = False) -> None:
        """Do what there is to do, and heartbeat."""
        if self.epoch and self.told is not None and self.told != self.owned and not slow:
            self.owned = set(self.told)
            self.says_all = True
        try:
            reply = self.world.submit(self._request(self.epoch))
        except UnreleasedInstanceIdError:
            return
        except _BEGIN_ANEW:
            self._begin_anew()
            return
        self.says_all = loses_answer
        if loses_answer:
            return
        assert reply.member_epoch >= self.epoch
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self.told = {
                (self.world.topics.name_by_id[topic.topic_id], partition)
                for topic in reply.assignment.topic_partitions
                for partition in topic.partitions
            }

    def leave(self) -> None:
        """Leave; a static member perhaps for a while."""
        for_a_while = self.instance_id is not None and self.world.random.random() < 0.7
        if self.epoch:
            with suppress(*_BEGIN_ANEW):
                self.world.submit(self._request(-2 if for_a_while else -1))
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.owned, self.told, self.epoch, self.says_all = set(), None, 0, True

    def _request(self, epoch: int) -> ConsumerHeartbeat:
        by_topic: dict[bytes, list[int]] = {}
        for name, partition in sorted(self.owned):
            by_topic.setdefault(self.world.topics.by_name[name].topic_id, []).append(partition)
        all_of_it = self.says_all or epoch == 0
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
        return ConsumerHeartbeat(request, 1, events.Client("client", "/127.0.0.1"), "unused")


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

    @property
    def has(self) -> Partitions:
        """What it reads from."""
        return self.owned

    def change_mind(self) -> None:
        """Subscribe to something else."""
        self.names = self.world.random.choice([["a"], ["b"], ["a", "b"]])
        self.needs_join = True

    def step(self, *, slow: bool = False, loses_answer: bool = False) -> None:
        """Join, ask for the assignment or heartbeat, whatever is next."""
        if self.waits or slow:
            return
        try:
            if self.needs_join:
                self._join()
            elif self.joined is not None:
                self._sync(self.joined)
            else:
                self._heartbeat()
        except GroupError as error:
            self._failed(error.code)

    def leave(self) -> None:
        """Leave."""
        if self.member_id:
            member = MemberIdentity(member_id=self.member_id)
            with suppress(UnknownMemberIdError):
                self.world.submit(events.LeaveGroup(LeaveGroupRequest(group_id=GROUP, members=[member])))
        self._failed(ErrorCode.UNKNOWN_MEMBER_ID)

    def _join(self) -> None:
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
        client = events.Client("client", "/127.0.0.1")
        try:
            reply = self.world.submit(events.JoinGroup(request, 9, client, fresh), self._joined)
        except GroupError:
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
        except GroupError:
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
        told = {
            (topic.topic, partition)
            for topic in (assignment.assigned_partitions if assignment else [])
            for partition in topic.partitions
        }
        self.world.fenced.discard(self.member_id)
        revoked = self.owned - told
        self.owned = told
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
            assert code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.INCONSISTENT_GROUP_PROTOCOL), code


def check_group(group: Any, before: Any) -> None:
    """What holds after every event."""
    if not isinstance(group, ConsumerGroup):
        return
    owners: dict[tuple[bytes, int], str] = {}
    for member_id, member in group.members.items():
        for held in (member.assigned, member.revoking):
            for topic, partitions in held.items():
                for partition in partitions:
                    assert owners.setdefault((topic, partition), member_id) == member_id, "two members have a partition"
                    assert group.partition_epoch(topic, partition) == member.epoch
    assert sum(map(len, group.partition_epochs.values())) == len(owners)
    assert set(group.targets) <= set(group.members)
    if isinstance(before, ConsumerGroup) and before.members:
        assert group.epoch >= before.epoch
        assert group.assignment_epoch >= before.assignment_epoch
        for member_id, member in group.members.items():
            was = before.members.get(member_id)
            away = member.epoch == -2 or (was is not None and was.epoch <= 0) or member.epoch == 0
            assert was is None or away or member.epoch >= was.epoch
