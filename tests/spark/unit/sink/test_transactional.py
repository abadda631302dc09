"""Streaming writes by transactions, without Spark: what readers see after which failure, and what is written again."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest

from pybroker.client import EARLIEST, LATEST, Admin, Fetcher, NewTopic, TopicPartition
from pybroker.testing import Broker
from pybroker_spark.sink import transactional
from pybroker_spark.sink.attempt import Attempt, Share
from pybroker_spark.sink.entries import Begun, Done, Wrote, parse_entry, write_entry
from pybroker_spark.sink.errors import SinkError, SplitError
from pybroker_spark.sink.ledger import Ledger
from pybroker_spark.sink.settings import forced_properties
from pybroker_spark.sink.transactional import TransactionalOutcome
from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.options import WriteOptions, parse_write
from tests.support import librdkafka_reader


class World:
    """One query that writes to one topic."""

    def __init__(self, broker: Broker) -> None:
        self.servers, self.query = broker.bootstrap_servers, uuid.uuid4().hex
        self.topic = f"out-{self.query[:6]}"
        self.admin = Admin(self.servers)
        self.admin.create_topics([NewTopic(self.topic, 2)])
        self.admin.wait_for_leaders(self.topic)
        given = {"kafka.bootstrap.servers": self.servers, "topic": self.topic, "exactly.once": "transactions"}
        parsed = parse_write(given)
        self.options = WriteOptions(
            topic=self.topic,
            bootstrap_servers=self.servers,
            properties=forced_properties(parsed.properties),
            exactly_once=parsed.exactly_once,
        )
        self.ledger = Ledger(self.servers, self.options.properties, self.query)

    def write(self, rows: Iterable[bytes], task: int = 0, batch: int = 0) -> TransactionalOutcome:
        values = pa.RecordBatch.from_pydict({"value": pa.array(list(rows), pa.binary())})
        return transactional.write(Share(self.query, batch, task), self.ledger, self.options, iter([values]))

    def commit(self, outcomes: dict[int, TransactionalOutcome], batch: int = 0) -> None:
        transactional.commit(self.query, batch, outcomes, self.ledger, self.options)

    def read(self, isolation: str = "read_committed") -> list[bytes]:
        partitions = dict.fromkeys([TopicPartition(self.topic, 0), TopicPartition(self.topic, 1)], LATEST)
        committed = isolation == "read_committed"
        ends = {p: o.offset for p, o in self.admin.list_offsets(partitions, read_committed=committed).items()}
        found: list[bytes] = []
        with Fetcher(self.servers, {"isolation.level": isolation}) as fetcher:
            fetcher.assign(dict.fromkeys(partitions, EARLIEST))
            while any(fetcher.positions()[p] < end for p, end in ends.items()):
                found += [record.value or b"" for record in fetcher.poll(1.0)]
        theirs = librdkafka_reader.values(self.servers, self.topic, partitions=2, isolation=isolation)
        assert sorted(found) == sorted(value for values in theirs for value in values)
        return sorted(found)


@pytest.fixture
def world(broker: Broker) -> Iterator[World]:
    world = World(broker)
    yield world
    world.ledger.close()
    world.admin.close()


def rows_of(count: int, prefix: str = "row") -> list[bytes]:
    return [f"{prefix} {number:03d}".encode() for number in range(count)]


def test_a_batch_of_many_tasks_is_seen_when_it_is_committed(world: World) -> None:
    outcomes = {task: world.write(rows_of(20, f"t{task}"), task) for task in range(3)}
    assert world.read() == []
    assert len(world.read("read_uncommitted")) == 60
    world.commit({**outcomes, 3: TransactionalOutcome()})
    assert world.read() == sorted(row for task in range(3) for row in rows_of(20, f"t{task}"))
    world.commit(outcomes)
    assert [e for e in transactional.read_committed(world.ledger, world.options) if isinstance(e, Done)] == [Done(0)]


def test_an_attempt_fences_the_one_before_it(world: World) -> None:
    first = world.write(rows_of(10))
    second = world.write(rows_of(10))
    with pytest.raises(SinkError, match="PRODUCER_FENCED"):
        world.commit({0: first})
    third = world.write(rows_of(10))
    world.commit({0: third})
    assert world.read() == rows_of(10)
    assert second.suspended != third.suspended


def test_a_batch_that_was_committed_in_part_is_finished_by_its_repetition(world: World) -> None:
    before = {task: world.write(rows_of(10, f"t{task}"), task) for task in range(2)}
    transactional.end(before[1].suspended, world.options, commits=True)  # type: ignore[arg-type]
    again = {task: world.write(rows_of(10, f"t{task}"), task) for task in range(2)}
    assert (again[1].suspended, again[1].rows) == (None, 10)
    world.commit(again)
    assert world.read() == sorted(rows_of(10, "t0") + rows_of(10, "t1"))


def test_a_repetition_that_is_split_otherwise_is_refused_and_writes_nothing(world: World) -> None:
    outcome = world.write(rows_of(10), task=5)
    transactional.end(outcome.suspended, world.options, commits=True)  # type: ignore[arg-type]
    with pytest.raises(SplitError, match="task 5"):
        world.commit({0: world.write(rows_of(10), task=0)})
    assert world.read() == rows_of(10)


def test_a_batch_whose_commit_took_effect_is_not_written_again(world: World) -> None:
    world.commit({0: world.write(rows_of(10))})
    again = world.write(rows_of(10))
    assert (again.begun, again.suspended) == (True, None)
    world.commit({0: again})
    world.commit({0: world.write(rows_of(5, "next"), batch=1)}, batch=1)
    assert world.read() == sorted(rows_of(10) + rows_of(5, "next"))


def test_a_batch_that_was_begun_in_the_other_way_is_finished_in_that(world: World) -> None:
    world.ledger.append(Begun(3, 0, 1, 0))
    with pytest.raises(SinkError, match=r"begun with exactly\.once=ledger"):
        world.write(rows_of(10), batch=3)
    world.commit({0: world.write(rows_of(10), batch=4)}, batch=4)
    world.write(rows_of(10), batch=5)
    values = pa.RecordBatch.from_pydict({"value": pa.array(rows_of(10), pa.binary())})
    with pytest.raises(SinkError, match=r"begun with exactly\.once=transactions"):
        Attempt(Share(world.query, 5, 0), world.ledger, world.options).write(iter([values]))


def test_a_task_without_rows_opens_no_transaction(world: World) -> None:
    assert world.write([]) == TransactionalOutcome()
    world.commit({0: TransactionalOutcome()})
    assert world.read("read_uncommitted") == []


def test_the_note_of_a_task_is_read_as_it_was_written() -> None:
    assert parse_entry(write_entry(Wrote(7, 3))) == Wrote(7, 3)


def test_the_way_is_one_of_two() -> None:
    given = {"kafka.bootstrap.servers": "any:1", "topic": "t"}
    assert parse_write(given).exactly_once == "ledger"
    with pytest.raises(OptionError, match=r"exactly\.once=both: must be ledger or transactions"):
        parse_write({**given, "exactly.once": "both"})
