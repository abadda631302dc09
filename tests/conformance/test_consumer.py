"""Our consumer against a broker: groups in both protocols, positions, commits, calls of a rebalance listener."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pybroker.client import (
    Admin,
    AsyncConsumer,
    ClientError,
    CommitFailedError,
    Consumer,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    RebalanceListener,
    Record,
    TopicPartition,
)
from pybroker.client.errors import ClosedError, NoOffsetError, SettingError
from tests.conformance.conftest import Server, serves

pytestmark = pytest.mark.one_and_three

PROTOCOLS = ["classic", "consumer"]
CONSUMER_GROUP_HEARTBEAT, CREATE_PARTITIONS = 68, 37
PATIENCE_SECONDS = 60

Make = Callable[..., Consumer]


class Diary(RebalanceListener):
    """The calls that a program's listener got, in order."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.entries.append(("revoked", [p.partition for p in partitions]))

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.entries.append(("assigned", [p.partition for p in partitions]))

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.entries.append(("lost", [p.partition for p in partitions]))


@pytest.fixture(autouse=True)
def _served(server: Server, request: pytest.FixtureRequest) -> None:
    protocol = getattr(request.node, "callspec", None) and request.node.callspec.params.get("protocol")
    if protocol == "consumer" and not serves(server, CONSUMER_GROUP_HEARTBEAT):
        pytest.skip("this broker does not serve the protocol of KIP-848")


@pytest.fixture
def fill(server: Server, topic_name: str) -> Callable[..., str]:
    """Creates a topic and puts records `0`, `1` ... in each of its partitions."""

    def make(partitions: int = 1, records: int = 0, name: str = topic_name) -> str:
        with Admin(server.bootstrap_servers) as admin:
            # The times of its records are of 1970.
            admin.create_topics([NewTopic(name, partitions, -1, {"retention.ms": "-1"})])
            admin.wait_for_leaders(name)
        with Producer(server.bootstrap_servers) as producer:
            for index in range(partitions):
                for number in range(records):
                    producer.send(name, b"%d" % number, partition=index, timestamp_ms=1000 + number)
        return name

    return make


@pytest.fixture
def settings(topic_name: str) -> dict[str, Any]:
    """A group of the test's own, read from the beginning."""
    return {"group.id": f"group-{topic_name}", "auto.offset.reset": "earliest", "enable.auto.commit": False}


def read(consumer: Consumer, count: int) -> list[Record]:
    """Poll until so many records have come."""
    records: list[Record] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records after {PATIENCE_SECONDS} s"
        records += consumer.poll(0.2)
    return records


def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> None:
    """Poll them in turn until something holds; records that come are dropped."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s"
        for consumer in consumers:
            consumer.poll(0.02)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_reads_on_from_what_it_committed(server: Server, fill: Any, settings: Any, protocol: str) -> None:
    topic = fill(2, 50)
    settings["group.protocol"] = protocol
    with Consumer(server.bootstrap_servers, settings) as first:
        first.subscribe([topic])
        seen = read(first, 100)
        assert sorted((r.partition, int(r.value or b"")) for r in seen) == [(p, n) for p in range(2) for n in range(50)]
        first.commit({TopicPartition(topic, 0): OffsetAndMetadata(40, "ten left"), TopicPartition(topic, 1): 50})
    with Consumer(server.bootstrap_servers, settings) as second:
        second.subscribe([topic])
        assert [(r.partition, r.offset) for r in read(second, 10)] == [(0, n) for n in range(40, 50)]
        committed = second.committed(TopicPartition(topic, 0), TopicPartition(topic, 1))
        assert committed[TopicPartition(topic, 0)] == OffsetAndMetadata(40, "ten left")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_commit_carries_the_leader_epoch_of_what_was_read(
    server: Server, fill: Any, settings: Any, protocol: str
) -> None:
    topic = fill(1, 3)
    settings["group.protocol"] = protocol
    with Consumer(server.bootstrap_servers, settings) as first:
        first.subscribe([topic])
        epoch = read(first, 3)[-1].leader_epoch
        first.commit()
    with Consumer(server.bootstrap_servers, settings) as second:
        second.subscribe([topic])
        partition = TopicPartition(topic, 0)
        assert second.committed(partition)[partition] == OffsetAndMetadata(3, leader_epoch=epoch)
        assert epoch >= 0
        poll_until(lambda: bool(second.assignment()), second)
        assert second.position(partition) == 3


@pytest.mark.parametrize(
    ("protocol", "strategy"),
    [*(("classic", name) for name in ("range", "roundrobin", "sticky", "cooperative-sticky")), ("consumer", None)],
)
def test_partitions_are_shared_and_given_back(
    server: Server, fill: Any, settings: Any, protocol: str, strategy: str | None
) -> None:
    topic = fill(4)
    settings |= {"group.protocol": protocol}
    settings |= {"partition.assignment.strategy": strategy, "heartbeat.interval.ms": 200} if strategy else {}
    one, other = Diary(), Diary()
    with Consumer(server.bootstrap_servers, settings) as first:
        first.subscribe([topic], listener=one)
        poll_until(lambda: len(first.assignment()) == 4, first)
        assert one.entries == [("assigned", [0, 1, 2, 3])]
        with Consumer(server.bootstrap_servers, settings) as second:
            second.subscribe([topic], listener=other)
            poll_until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
            assert first.assignment().isdisjoint(second.assignment())
            given = next(partitions for what, partitions in one.entries if what == "revoked")
            eager = strategy in ("range", "roundrobin", "sticky")
            assert len(given) == (4 if eager else 2), "an eager member gives everything back, another what it loses"
        assert other.entries[-1][0] == "revoked", "closing gives back what there is"
        poll_until(lambda: len(first.assignment()) == 4, first)
    assert [what for what, _ in one.entries if what == "lost"] == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_follows_topics_that_come_later(server: Server, fill: Any, settings: Any, protocol: str) -> None:
    name = fill(1, 1)
    settings |= {"group.protocol": protocol, "metadata.max.age.ms": 300}
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe(pattern=f"{name}(-.*)?")
        assert {r.topic for r in read(consumer, 1)} == {name}
        consumer.commit()
        later = fill(2, 1, f"{name}-later")
        assert {(r.topic, r.partition) for r in read(consumer, 2)} == {(later, 0), (later, 1)}


def test_a_compiled_pattern_is_searched_for_by_the_client(server: Server, fill: Any, settings: Any) -> None:
    name = fill(1, 1)
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe(pattern=re.compile(rf"^{name}$"))
        assert {r.topic for r in read(consumer, 1)} == {name}
        assert consumer.subscription() == {name}


def test_new_partitions_are_assigned_by_the_leader(server: Server, fill: Any, settings: Any) -> None:
    if not serves(server, CREATE_PARTITIONS):
        pytest.skip("this broker does not serve CreatePartitions")
    topic = fill(1)
    settings["metadata.max.age.ms"] = 300
    with Consumer(server.bootstrap_servers, settings) as consumer, Admin(server.bootstrap_servers) as admin:
        consumer.subscribe([topic])
        poll_until(lambda: len(consumer.assignment()) == 1, consumer)
        grow(admin, topic, 3)
        poll_until(lambda: len(consumer.assignment()) == 3, consumer)
        assert {p.partition for p in consumer.assignment()} == {0, 1, 2}


def grow(admin: Admin, topic: str, partitions: int) -> None:
    from tests.support.wire import Wire

    cluster = admin.describe_cluster()
    with Wire(f"{cluster.brokers[0].host}:{cluster.brokers[0].port}") as wire:
        made = wire.call(
            "CreatePartitions", 3, topics=[{"name": topic, "count": partitions, "assignments": None}], timeout_ms=10_000
        )
        assert made.results[0].error_code == 0, made


def test_auto_commit_keeps_what_was_handed_out_before(server: Server, fill: Any, settings: Any) -> None:
    topic = fill(1, 30)
    partition = TopicPartition(topic, 0)
    settings |= {"enable.auto.commit": True, "auto.commit.interval.ms": 1, "max.poll.records": 10}
    with Consumer(server.bootstrap_servers, settings) as consumer, Admin(server.bootstrap_servers) as admin:
        consumer.subscribe([topic])
        assert [r.offset for r in read(consumer, 10)] == list(range(10))
        group = settings["group.id"]
        assert admin.list_group_offsets(group).get(partition, OffsetAndMetadata(0)).offset == 0
        assert [r.offset for r in consumer.poll(60)] == list(range(10, 20))
        poll_until(lambda: admin.list_group_offsets(group).get(partition, OffsetAndMetadata(0)).offset == 10)
    with Admin(server.bootstrap_servers) as admin:
        assert admin.list_group_offsets(settings["group.id"])[partition].offset == 20, "closing commits what was read"


def test_a_commit_without_waiting_calls_its_callback_in_a_later_poll(server: Server, fill: Any, settings: Any) -> None:
    topic = fill(1, 5)
    partition = TopicPartition(topic, 0)
    calls: list[Any] = []
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.assign([partition])
        at = OffsetAndMetadata(5, leader_epoch=read(consumer, 5)[-1].leader_epoch)
        consumer.commit_later(callback=lambda offsets, error: calls.append((offsets, error)))
        consumer.commit_later({partition: OffsetAndMetadata(3, "x" * 10_000)}, lambda _o, error: calls.append(error))
        poll_until(lambda: len(calls) == 2, consumer)
        assert calls[0] == ({partition: at}, None)
        assert "OFFSET_METADATA_TOO_LARGE" in str(calls[1])
        assert consumer.committed(partition)[partition] == at


def test_assigned_partitions_can_be_paused_and_moved(server: Server, fill: Any, settings: Any) -> None:
    topic = fill(2, 20)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.assign([first, second])
        consumer.pause(second)
        assert {r.partition for r in read(consumer, 20)} == {0}
        assert (consumer.poll(0.3), consumer.paused(), consumer.position(second)) == ([], {second}, 0)
        consumer.resume(second)
        assert [r.offset for r in consumer.poll(60, 3)] == [0, 1, 2]
        consumer.pause(second)
        assert (consumer.position(second), consumer.poll(0.3)) == (3, [])
        consumer.resume(second)
        consumer.seek(first, 15)
        left = read(consumer, 17 + 5)
        assert sorted((r.partition, r.offset) for r in left) == [(0, n) for n in range(15, 20)] + [
            (1, n) for n in range(3, 20)
        ]
        consumer.seek_to_beginning(first)
        assert consumer.poll(60, 1)[0].offset == 0
        consumer.seek_to_end()
        assert (consumer.position(first), consumer.position(second)) == (20, 20)
        with pytest.raises(ClientError, match="is not assigned"):
            consumer.seek(TopicPartition(topic, 7), 0)


def test_offsets_are_looked_up_by_time_and_at_both_ends(server: Server, fill: Any) -> None:
    topic = fill(1, 20)
    partition = TopicPartition(topic, 0)
    with Consumer(server.bootstrap_servers) as consumer:
        found = consumer.offsets_for_times({partition: 1007})[partition]
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (7, 1007)
        assert consumer.offsets_for_times({partition: 9_999_999}) == {partition: None}
        assert (consumer.beginning_offsets(partition), consumer.end_offsets(partition)) == (
            {partition: 0},
            {partition: 20},
        )
        with pytest.raises(SettingError, match=r"set group\.id"):
            consumer.subscribe([topic])
        with pytest.raises(ClientError, match=r"set group\.id"):
            consumer.commit({partition: 1})


def test_without_offset_and_reset_a_poll_says_so(server: Server, fill: Any, settings: Any) -> None:
    topic = fill(1, 1)
    with Consumer(server.bootstrap_servers, settings | {"auto.offset.reset": "none"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(NoOffsetError, match=rf"no committed offset for {topic}-0"):
            consumer.poll(60)
        consumer.seek(TopicPartition(topic, 0), 0)
        assert len(read(consumer, 1)) == 1
    with Consumer(server.bootstrap_servers, settings | {"auto.offset.reset": "by_duration:PT1H"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert consumer.position(TopicPartition(topic, 0)) == 1, "the record is from 1970"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_program_that_does_not_poll_loses_its_place_and_comes_back(
    server: Server, fill: Any, settings: Any, protocol: str
) -> None:
    topic = fill(2, 1)
    settings |= {"group.protocol": protocol, "max.poll.interval.ms": 1000}
    settings |= {"heartbeat.interval.ms": 200} if protocol == "classic" else {}
    diary = Diary()
    with Consumer(server.bootstrap_servers, settings) as slow, Consumer(server.bootstrap_servers, settings) as other:
        slow.subscribe([topic], listener=diary)
        assert len(read(slow, 2)) == 2
        other.subscribe([topic])
        poll_until(lambda: len(other.assignment()) == 2, other)
        with pytest.raises(CommitFailedError):
            slow.commit()
        poll_until(lambda: len(slow.assignment()) == len(other.assignment()) == 1, slow, other)
        assert diary.entries[0] == ("assigned", [0, 1])
        assert diary.entries[1] == ("lost", [0, 1])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_comes_back_without_a_rebalance(
    server: Server, fill: Any, settings: Any, protocol: str
) -> None:
    topic = fill(4)
    settings["group.protocol"] = protocol
    with Consumer(server.bootstrap_servers, settings | {"group.instance.id": "other"}) as other:
        with Consumer(server.bootstrap_servers, settings | {"group.instance.id": "static"}) as static:
            diary = Diary()
            static.subscribe([topic])
            other.subscribe([topic], listener=diary)
            poll_until(lambda: len(static.assignment()) == len(other.assignment()) == 2, static, other)
            held, entries = static.assignment(), len(diary.entries)
        with Consumer(server.bootstrap_servers, settings | {"group.instance.id": "static"}) as again:
            again.subscribe([topic])
            poll_until(lambda: again.assignment() == held, again, other)
            assert len(diary.entries) == entries


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unsubscribing_leaves_the_group(server: Server, fill: Any, settings: Any, protocol: str) -> None:
    topic = fill(2)
    settings["group.protocol"] = protocol
    with Consumer(server.bootstrap_servers, settings) as consumer, Admin(server.bootstrap_servers) as admin:
        group = settings["group.id"]
        consumer.subscribe([topic])
        poll_until(lambda: len(consumer.assignment()) == 2, consumer)
        assert len(admin.describe_groups([group])[group].members) == 1
        consumer.unsubscribe()
        assert consumer.assignment() == frozenset()
        poll_until(lambda: not admin.describe_groups([group])[group].members)
        consumer.assign([TopicPartition(topic, 0)])
        assert consumer.position(TopicPartition(topic, 0)) == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_changed_subscription_changes_the_partitions(server: Server, fill: Any, settings: Any, protocol: str) -> None:
    first, second = fill(1, 3), fill(1, 3, "another-" + settings["group.id"])
    settings["group.protocol"] = protocol
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe([first])
        assert {r.topic for r in read(consumer, 3)} == {first}
        consumer.subscribe([second])
        assert {r.topic for r in read(consumer, 3)} == {second}
        assert consumer.assignment() == {TopicPartition(second, 0)}


def test_a_listener_may_seek_and_commit(server: Server, fill: Any, settings: Any) -> None:
    topic = fill(1, 10)

    class Mover(RebalanceListener):
        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            for partition in partitions:
                consumer.seek(partition, 7)

        def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            consumer.commit(dict.fromkeys(partitions, 9))

    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe([topic], listener=Mover())
        assert [r.offset for r in read(consumer, 3)] == [7, 8, 9]
    with Admin(server.bootstrap_servers) as admin:
        assert admin.list_group_offsets(settings["group.id"])[TopicPartition(topic, 0)].offset == 9


def test_a_topic_that_comes_later_is_read_when_it_is_there(
    server: Server, fill: Any, settings: Any, topic_name: str
) -> None:
    settings |= {"allow.auto.create.topics": False}
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe([topic_name])
        assert consumer.poll(0.5) == []
        fill(1, 2)
        assert len(read(consumer, 2)) == 2


async def test_the_asyncio_face_keeps_its_membership_while_nobody_polls(
    server: Server, fill: Any, settings: Any
) -> None:
    topic = await asyncio.to_thread(fill, 1, 10)
    settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 300, "max.poll.records": 4}
    async with AsyncConsumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe([topic])
        assert [r.offset for r in await consumer.poll(PATIENCE_SECONDS)] == [0, 1, 2, 3]
        generation = consumer.membership()[1]
        await asyncio.wait_for(until_heartbeats(consumer, 3), PATIENCE_SECONDS)
        await consumer.commit()
        assert consumer.membership()[1] == generation
        assert [r.offset for r in await consumer.poll(60)] == [4, 5, 6, 7]
    with pytest.raises(ClosedError):
        await consumer.poll(0)


async def until_heartbeats(consumer: AsyncConsumer, count: int) -> None:
    """Wait until the link has sent so many heartbeats, without polling."""
    link: Any = consumer._driver
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    seen, due = 0, link.member.heartbeat_at()
    while seen < count:
        await asyncio.wait([never], timeout=0.02)
        if link.member.heartbeat_at() != due:
            seen, due = seen + 1, link.member.heartbeat_at()
