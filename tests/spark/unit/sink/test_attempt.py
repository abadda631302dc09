"""Attempts to write a task's share of a batch, without Spark: what is in a broker's log after which failure."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pybroker.client import EARLIEST, LATEST, Admin, Continuation, Fetcher, NewTopic, Producer, TopicPartition
from pybroker.client.administration.topics import MorePartitions
from pybroker.testing import Broker
from pybroker_spark.sink.attempt import Attempt, Outcome, Share
from pybroker_spark.sink.entries import Begun, Done
from pybroker_spark.sink.errors import InterferenceError, ReplayError, SinkError, TargetLostError
from pybroker_spark.sink.ledger import Ledger
from pybroker_spark.sink.settings import forced_properties
from pybroker_spark.source.options import WriteOptions, parse_write
from tests.support import librdkafka_reader
from tests.support.conditions import wait_until

TRIES = 4
"""Attempts of a task in Spark."""


class Died(Exception):  # noqa: N818 (an event, not an error)
    """Stands for the end of a worker: nothing after it is done."""


DEATHS = (Died, SinkError)
"""What a dead attempt had under way may arrive while the next one writes, which then fails before it dies."""


class World:
    """One query that writes to one topic."""

    def __init__(self, broker: Broker, topic: str | None = "out", partitions: int = 3) -> None:
        self.servers = broker.bootstrap_servers
        self.query = uuid.uuid4().hex
        self.topic = f"{topic}-{self.query[:6]}"
        self.admin = Admin(self.servers)
        self.admin.create_topics([NewTopic(self.topic, partitions)])
        self.admin.wait_for_leaders(self.topic)
        self.ledger = Ledger(self.servers, {}, self.query)

    def options(self, *, dynamic: bool = False) -> WriteOptions:
        given = {"kafka.bootstrap.servers": self.servers, "kafka.linger.ms": "0"}
        options = parse_write(given if dynamic else {**given, "topic": self.topic})
        return WriteOptions(
            topic=options.topic,
            bootstrap_servers=options.bootstrap_servers,
            properties=forced_properties(options.properties),
        )

    def attempt(
        self, rows: Iterable[bytes], *, batch: int = 0, task: int = 0, dies_after: int | None = None, size: int = 7
    ) -> Outcome:
        share = Share(self.query, batch, task)
        batches = batches_of(rows, size, dies_after, lambda least: self.wait_for_records(least))
        return Attempt(share, self.ledger, self.options()).write(batches)

    def wait_for_records(self, least: int) -> None:
        partitions = [TopicPartition(self.topic, index) for index in range(3)]

        def written() -> bool:
            return (
                sum(end.offset for end in self.admin.list_offsets(dict.fromkeys(partitions, LATEST)).values()) >= least
            )

        wait_until(written, within=60, what=f"{least} records in {self.topic}")

    def task(self, rows: Iterable[bytes], *, batch: int = 0, task: int = 0) -> Outcome:
        """Attempts as Spark makes them: after one that failed there is another. What a dead one had under way may
        still arrive, and makes the first of them fail."""
        rows = list(rows)
        for _ in range(TRIES - 1):
            with contextlib.suppress(SinkError):
                return self.attempt(rows, batch=batch, task=task)
        return self.attempt(rows, batch=batch, task=task)

    def commit(self, batch: int) -> None:
        self.ledger.append(Done(batch))

    def log(self, topic: str | None = None) -> list[bytes]:
        """All values, in no order."""
        return sorted(value for value, _, _ in self.records(topic))

    def records(self, topic: str | None = None) -> list[tuple[bytes, int, int]]:
        """Value, partition and offset of every record; librdkafka reads the same values."""
        name = topic or self.topic
        (found,) = self.admin.describe_topics([name])
        partitions = [TopicPartition(name, p.index) for p in found.partitions]
        ends = {p: o.offset for p, o in self.admin.list_offsets(dict.fromkeys(partitions, LATEST)).items()}
        records: list[tuple[bytes, int, int]] = []
        with Fetcher(self.servers) as fetcher:
            fetcher.assign(dict.fromkeys(partitions, EARLIEST))
            while len(records) < sum(ends.values()):
                records += [(r.value or b"", r.partition, r.offset) for r in fetcher.poll(1.0)]
        theirs = librdkafka_reader.values(self.servers, name, partitions=len(partitions))
        values = [[value for value, index, _ in records if index == partition.partition] for partition in partitions]
        assert values == theirs
        return records

    def close(self) -> None:
        self.ledger.close()
        self.admin.close()


@pytest.fixture
def world(broker: Broker) -> Iterator[World]:
    world = World(broker)
    yield world
    world.close()


def rows_of(count: int, prefix: str = "row") -> list[bytes]:
    return [f"{prefix} {number}".encode() for number in range(count)]


def batches_of(
    rows: Iterable[bytes], size: int, dies_after: int | None = None, wait: Callable[[int], None] = lambda _least: None
) -> Iterator[pa.RecordBatch]:
    """Batches with keys for two rows of three. The worker dies when so many were taken, and something of each but
    perhaps the last was written."""
    listed = list(rows)
    for number, begin in enumerate(range(0, len(listed), size)):
        if number == dies_after:
            wait(size * (number - 1) + 1)
            raise Died
        values = listed[begin : begin + size]
        keys = [value if len(value) % 3 else None for value in values]
        yield pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


def test_the_first_attempt_writes_every_row_once_and_reads_nothing_back(world: World) -> None:
    outcome = world.attempt(rows_of(100))
    assert (outcome.begun, outcome.done, outcome.rows, outcome.repeated) == (True, False, 100, 0)
    assert world.log() == sorted(rows_of(100))


def test_a_task_without_rows_leaves_no_trace(world: World) -> None:
    assert world.attempt([]) == Outcome()
    assert world.ledger.read() == []


@pytest.mark.parametrize("dies_after", [1, 5, 14])
def test_a_later_attempt_writes_what_an_earlier_one_has_not(world: World, dies_after: int) -> None:
    with pytest.raises(DEATHS):
        world.attempt(rows_of(100), dies_after=dies_after)
    outcome = world.task(rows_of(100))
    assert world.log() == sorted(rows_of(100))
    assert outcome.rows == 100
    assert 0 <= outcome.repeated <= 7 * dies_after


def test_attempts_that_die_one_after_the_other_leave_each_row_once(world: World) -> None:
    for dies_after in (2, 4, 1, 9):
        with pytest.raises(DEATHS):
            world.attempt(rows_of(100), dies_after=dies_after)
    world.task(reversed(rows_of(100)))  # the order may be another one
    assert world.log() == sorted(rows_of(100))


def test_a_batch_that_was_written_and_not_committed_is_not_written_again(world: World) -> None:
    world.attempt(rows_of(50))
    assert world.attempt(rows_of(50)).repeated == 50
    assert world.log() == sorted(rows_of(50))


def test_a_batch_that_is_done_is_passed_over(world: World) -> None:
    world.attempt(rows_of(50), batch=3)
    world.commit(3)
    assert world.attempt(rows_of(50), batch=3).done
    assert not world.attempt(rows_of(10, "next"), batch=4).done
    assert world.log() == sorted(rows_of(50) + rows_of(10, "next"))


def test_equal_rows_are_counted_not_merged(world: World) -> None:
    rows = [b"same"] * 40 + [b"other"] * 2
    with pytest.raises(DEATHS):
        world.attempt(rows, dies_after=3)
    world.task(rows)
    assert world.log() == sorted(rows)


def test_rows_of_other_tasks_batches_and_producers_are_left_alone(world: World) -> None:
    world.attempt(rows_of(20), task=1)
    with Producer(world.servers) as stranger:
        for row in rows_of(20):
            stranger.send(world.topic, row)
    with pytest.raises(DEATHS):
        world.attempt(rows_of(20), dies_after=1)
    world.task(rows_of(20))
    assert world.log() == sorted(rows_of(20) * 3)


def test_an_attempt_with_other_rows_is_refused_by_topic_partition_and_offset(world: World) -> None:
    world.attempt(rows_of(30))
    with pytest.raises(ReplayError) as refusal:
        world.attempt(rows_of(20) + rows_of(10, "random"))
    text = str(refusal.value)
    assert f"query {world.query} batch 0 task 0: 10 rows that an earlier attempt wrote" in text
    assert any(
        f"{world.topic}-{partition} offset {offset}, are not" in text for _, partition, offset in world.records()
    )
    assert f"delete topic {world.ledger.topic}" in text


def test_an_older_attempt_that_still_lives_gets_nothing_through_after_a_newer_one(world: World) -> None:
    """The older one stands for a worker that Spark has given up: it goes on from the same place as the newer one."""
    rows = rows_of(60)
    older = batches_of(rows, 7)
    with pytest.raises(DEATHS):
        world.attempt(rows, dies_after=4)
    (begun,) = [entry for entry in world.ledger.read() if isinstance(entry, Begun)]
    sent = {TopicPartition(world.topic, index): 0 for index in range(3)}
    for _, partition, _ in world.records():
        sent[TopicPartition(world.topic, partition)] += 1
    world.task(rows)
    before = world.log()
    assert before == sorted(rows)
    zombie = Producer(world.servers, continues=Continuation(begun.producer_id, begun.epoch, sent))
    with contextlib.suppress(Exception):
        for batch in older:
            zombie.send_columns(batch, topic=world.topic)
            zombie.flush()
    zombie.close(0.0)
    assert world.log() == before


def test_rows_that_something_else_writes_under_the_same_identity_are_noticed(world: World) -> None:
    with pytest.raises(DEATHS):
        world.attempt(rows_of(20), dies_after=2)
    (begun,) = [entry for entry in world.ledger.read() if isinstance(entry, Begun)]

    def rows() -> Iterator[pa.RecordBatch]:
        yield from batches_of(rows_of(20), 7)
        written = {TopicPartition(world.topic, index): 0 for index in range(3)}
        for _, partition, _ in world.records():
            written[TopicPartition(world.topic, partition)] += 1
        place = Continuation(begun.producer_id, begun.epoch, written)
        with Producer(world.servers, continues=place) as other:
            other.send(world.topic, b"stray", partition=0).result()

    share = Share(world.query, 0, 0)
    with pytest.raises((InterferenceError, SinkError)):
        Attempt(share, world.ledger, world.options()).write(rows())


def test_a_partition_that_is_added_between_attempts_is_looked_at_too(world: World) -> None:
    with pytest.raises(DEATHS):
        world.attempt(rows_of(90), dies_after=5)
    world.admin.create_partitions({world.topic: MorePartitions(5)})
    world.admin.wait_for_leaders(world.topic)
    with pytest.raises(DEATHS):
        world.attempt(rows_of(90), dies_after=9)
    world.task(rows_of(90))
    assert world.log() == sorted(rows_of(90))


def test_a_topic_that_is_gone_is_named_with_where_it_was_written(world: World) -> None:
    with pytest.raises(DEATHS):
        world.attempt(rows_of(20), dies_after=1)
    world.admin.delete_topics([world.topic])
    with pytest.raises(SinkError, match=world.topic):
        world.attempt(rows_of(20))


def test_a_topic_that_was_made_anew_between_batches_is_an_error(world: World) -> None:
    outcome = world.attempt(rows_of(20))
    world.ledger.append(Done(0, dict(outcome.topic_ids or {})))
    world.admin.delete_topics([world.topic])
    world.admin.create_topics([NewTopic(world.topic, 2)])
    world.admin.wait_for_leaders(world.topic)
    with pytest.raises(TargetLostError, match=rf"topic '{world.topic}' was deleted and made anew.*offsets \[0, 0\]"):
        world.attempt(rows_of(20), batch=1)


def test_records_that_were_deleted_meanwhile_are_named_by_offset(world: World) -> None:
    with pytest.raises(DEATHS):
        world.attempt(rows_of(60), dies_after=6)
    ends = {p: 0 for _, p, _ in world.records()}
    for _, partition, offset in world.records():
        ends[partition] = max(ends[partition], offset + 1)
    partition, end = next(iter(sorted(ends.items())))
    world.admin.delete_records({TopicPartition(world.topic, partition): end})
    with pytest.raises(TargetLostError, match=rf"{world.topic}-{partition}: the log begins at offset {end}"):
        world.attempt(rows_of(60))


def test_topics_that_rows_name_are_noted_when_they_are_met(world: World) -> None:
    names = [f"{world.topic}-{name}" for name in "ab"]
    world.admin.create_topics([NewTopic(name, 2) for name in names])
    rows = [(names[number // 10 % 2], f"{number}".encode()) for number in range(60)]

    def batches(dies_after: int | None) -> Iterator[pa.RecordBatch]:
        for number, begin in enumerate(range(0, len(rows), 10)):
            if number == dies_after:
                raise Died
            topics, values = zip(*rows[begin : begin + 10], strict=True)
            yield pa.RecordBatch.from_pydict({"topic": pa.array(topics), "value": pa.array(values, pa.binary())})

    share = Share(world.query, 0, 0)
    for dies_after in (1, 4):
        with pytest.raises(DEATHS):
            Attempt(share, world.ledger, world.options(dynamic=True)).write(batches(dies_after))
    for _ in range(TRIES):
        with contextlib.suppress(SinkError):
            Attempt(share, world.ledger, world.options(dynamic=True)).write(batches(None))
            break
    for name in names:
        assert world.log(name) == sorted(value for topic, value in rows if topic == name)


def test_the_ledger_keeps_what_is_done_and_cuts_what_it_was_made_of(world: World) -> None:
    for batch in range(3):
        world.attempt(rows_of(5, f"{batch}"), batch=batch)
        world.ledger.cut(world.ledger.append(Done(batch)))
        assert world.ledger.read() == [Done(batch)]
    assert world.admin.describe_configs(world.ledger.topic)["retention.ms"].value == "-1"


def test_a_ledger_is_read_by_a_process_that_did_not_write_it(world: World, tmp_path: Path) -> None:
    world.attempt(rows_of(5))
    other = Ledger(world.servers, {}, world.query)
    assert other.read() == world.ledger.read() != []
    other.close()
