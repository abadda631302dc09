"""Whatever transactions commit for a group: the log says which offsets count and which are pending, by Kafka's rule."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group import events
from pybroker.coordinator.group.errors import GroupError
from pybroker.coordinator.group.log import GroupRecordCodec
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.protocol.messages import offset_commit as plain
from pybroker.protocol.messages import offset_delete as deletion
from pybroker.protocol.messages import txn_offset_commit as transactional
from tests.support.groups import group_settings
from tests.support.memory_log import MemoryLog

SETTINGS = group_settings(offsets_retention_ms=40)
CODEC = GroupRecordCodec(0)
KEYS = [(group, (topic, 0)) for group in ("g", "h") for topic in ("a", "b")]
PRODUCERS = (7, 8, 9)

steps = st.lists(
    st.tuples(
        st.sampled_from(["plain", "pending", "pending", "end", "forget", "delete", "expire", "topic", "failed"]),
        st.sampled_from(KEYS),
        st.sampled_from(PRODUCERS),
        st.booleans(),
    ),
    max_size=40,
)


class Oracle:
    """Kafka's rule in its own words: of commits that count, the one with the higher offset in the log."""

    def __init__(self) -> None:
        self.counted: dict[Any, tuple[int, int]] = {}
        self.pending: dict[int, dict[Any, tuple[int, int]]] = {}

    def end(self, producer: int, committed: bool) -> None:
        for key, found in self.pending.pop(producer, {}).items():
            if committed and found > self.counted.get(key, (-1, -1)):
                self.counted[key] = found

    def forget(self, key: Any) -> None:
        self.counted.pop(key, None)
        for of_producer in self.pending.values():
            of_producer.pop(key, None)


class History:
    """A machine whose records go to a log as the runner takes them there, and the oracle beside it."""

    def __init__(self) -> None:
        self.machine, self.log, self.oracle, self.now = GroupMachine(SETTINGS), MemoryLog(), Oracle(), 0

    def decide(self, event: Any, *, fails: bool = False) -> list[Any]:
        draft = self.machine.draft()
        try:
            records = list(draft.handle(event, self.now).records)
        except GroupError:
            draft.drop()
            return []
        before = snapshot(self.machine)
        for record in records:
            draft.apply(record)
        if fails:
            draft.drop()
            assert snapshot(self.machine) == before
            return []
        if records:
            CODEC.write(self.log, records, self.now)
        draft.keep()
        return records

    def step(self, what: str, key: tuple[str, tuple[str, int]], producer: int, flag: bool) -> None:
        self.now += 10
        group, (topic, _) = key
        at = self.log.log_end_offset
        if what == "plain":
            self.decide(commit(group, topic, self.now))
            self.oracle.counted[key] = (at, self.now)
        elif what == "pending":
            self.decide(commit_in(producer, group, topic, self.now))
            self.oracle.pending.setdefault(producer, {})[key] = (at, self.now)
        elif what == "end":
            self.decide(events.CompleteTransaction(producer, 0, 1, flag, 2))
            self.oracle.end(producer, flag)
        elif what == "forget":
            partitions = [deletion.OffsetDeleteRequestPartition(partition_index=0)]
            topics = [deletion.OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
            self.decide(events.DeleteOffsets(deletion.OffsetDeleteRequest(group_id=group, topics=topics)))
            self.oracle.forget(key)
        elif what == "delete":
            self.decide(events.DeleteGroups([group]))
            for of_group in [key for key in KEYS if key[0] == group]:
                self.oracle.forget(of_group)
        elif what == "topic":
            self.decide(events.TopicsDeleted([(topic, bytes(16))]))
            for of_topic in [key for key in KEYS if key[1][0] == topic]:
                self.oracle.forget(of_topic)
        elif what == "expire":
            self.decide(events.ExpireOffsets())
            for old, (_, since) in list(self.oracle.counted.items()):
                if self.now - since >= 40 and not any(old in mine for mine in self.oracle.pending.values()):
                    del self.oracle.counted[old]
        elif what == "failed":
            self.decide(commit_in(producer, group, topic, self.now), fails=True)
            self.decide(events.CompleteTransaction(producer, 0, 1, flag, 2), fails=True)
            self.decide(commit(group, topic, self.now), fails=True)


def commit(group: str, topic: str, offset: int) -> events.CommitOffsets:
    partition = plain.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [plain.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    return events.CommitOffsets(plain.OffsetCommitRequest(group_id=group, topics=topics), 9)


def commit_in(producer: int, group: str, topic: str, offset: int) -> events.CommitTransactionalOffsets:
    partition = transactional.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [transactional.TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])]
    request = transactional.TxnOffsetCommitRequest(group_id=group, producer_id=producer, topics=topics)
    return events.CommitTransactionalOffsets(request, {}, 0)


def snapshot(machine: GroupMachine) -> Any:
    """The groups, the offsets that count, and those that are pending by producer, where they may still count."""
    counted = {
        (group, partition): value.offset
        for group, offsets in machine.state.all_offsets().items()
        for partition, value in offsets.items()
    }
    pending = {
        (group, partition, producer): (offset.value.offset, offset.is_overtaken)
        for group in machine.state.groups
        for partition, of_producers in machine.state.pending(group).items()
        for producer, offset in of_producers.items()
    }
    return set(machine.state.groups), counted, pending


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.integers(61, 2_000))
def test_the_log_alone_says_what_counts_and_what_is_pending(
    taken: list[tuple[str, tuple[str, tuple[str, int]], int, bool]], chunk_bytes: int
) -> None:
    history = History()
    for step in taken:
        history.step(*step)
    _, counted, pending = snapshot(history.machine)
    assert counted == {key: offset for key, (_, offset) in history.oracle.counted.items()}
    assert {(key, producer): offset for (*key, producer), (offset, _) in pending.items() for key in [tuple(key)]} == {
        (key, producer): offset
        for producer, of_producer in history.oracle.pending.items()
        for key, (_, offset) in of_producer.items()
    }

    loaded, at = GroupMachine(SETTINGS), 0
    while at < history.log.log_end_offset:
        chunk = CODEC.decode(history.log.read(at, chunk_bytes))
        loaded.load(chunk.records)
        at = chunk.next_offset
    assert snapshot(loaded) == snapshot(history.machine)
