"""A task that begins anew for every batch does what one task does that lives on."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

import pytest

from pybroker.streams import STRING, StreamsBuilder
from pybroker.streams.errors import StreamsError
from pybroker.streams.processor import Processor, ProcessorContext, PunctuationType
from pybroker.streams.records import Record
from pybroker.streams.runtime.collector import ProducedRecord
from pybroker.streams.testing import TopologyTestDriver
from tests.support import streams_spec
from tests.support.streams_batches import BatchRunner, is_racy, lines, sent
from tests.support.streams_generator import random_topology
from tests.support.streams_inputs import random_inputs, topics_of
from tests.support.streams_steps import Step
from tests.support.streams_topologies import ALONE

COUNT = int(os.environ.get("SPARK_STREAMS_TOPOLOGIES", "40"))
CONFIG = {"application.id": "app", "default.key.serde": STRING, "default.value.serde": STRING}
REFUSED = {name for name in ALONE if "global" in name} | {"suppress_no_logging", "process_collect_by_wall_clock"}


def failure(call: Callable[[], object]) -> str | None:
    """Return the message of an error of streams, or None."""
    try:
        call()
    except StreamsError as error:
        return str(error)
    return None


def check_batches(steps: Sequence[Step], dice: random.Random, count: int) -> None:
    """Compare a batch for each record with Kafka's rules of one task, which `TopologyTestDriver` has."""
    config = streams_spec.configuration({"statestore.cache.max.bytes": "0"})
    runner = BatchRunner(streams_spec.Plan().build(steps, config), config)
    if is_racy(runner.plan):
        return
    with TopologyTestDriver(streams_spec.Plan().build(steps, config), config) as driver:
        for given in random_inputs(dice, topics_of(steps), count):
            if "topic" not in given:
                continue
            if (theirs := failure(lambda: streams_spec.pipe(driver, given))) is not None:  # noqa: B023 - called here
                assert failure(lambda: runner.run([sent(given)])) == theirs  # noqa: B023 - called here
                return  # Where a task fails, the records that it has sent are not compared.
            runner.run([sent(given)])
            for topic in driver.produced_topics():
                its = driver.produced(topic)
                if not topic.endswith("-changelog"):
                    assert lines(runner.produced.pop(topic)) == lines(its), topic
            assert not any(runner.produced.values())


@pytest.mark.parametrize("name", sorted(ALONE.keys() - REFUSED))
def test_every_operation_continues_in_the_next_batch(name: str) -> None:
    check_batches(ALONE[name], random.Random(name), 25)


def test_random_topologies_continue_in_the_next_batch() -> None:
    for seed in range(COUNT):
        dice = random.Random(seed)
        check_batches(random_topology(dice), dice, 40)


def record(topic: str, key: str, value: str, timestamp: int) -> ProducedRecord:
    return ProducedRecord(topic, key.encode(), value.encode(), timestamp)


def test_cache_sends_the_last_value_of_a_key_and_batch() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().reduce(lambda one, other: one + other, store="kept").to_stream().to("out")
    runner = BatchRunner(builder.build(), CONFIG)
    runner.run([record("in", "a", "x", 1), record("in", "b", "y", 2), record("in", "a", "z", 3)])
    runner.run([record("in", "a", "w", 4)])
    assert [(r.key, r.value, r.timestamp) for r in runner.produced["out"]] == [
        (b"b", b"y", 2),
        (b"a", b"xz", 3),
        (b"a", b"xzw", 4),
    ]


def test_batch_is_processed_in_the_order_of_timestamps_of_its_partitions() -> None:
    builder = StreamsBuilder()
    builder.stream("left").merge(builder.stream("right")).to("out")
    runner = BatchRunner(builder.build(), CONFIG)
    late = record("left", "a", "late", 1)
    runner.run([record("left", "a", "2", 20), late, record("right", "a", "1", 10), record("right", "a", "3", 30)])
    assert [r.value for r in runner.produced["out"]] == [b"1", b"2", b"late", b"3"]


class Scheduling(Processor[str, str]):
    """Schedules a punctuator every 10 ms, in `init` or with the first record, and forwards its times."""

    def __init__(self, kind: PunctuationType, late: bool = False) -> None:
        self._kind, self._late = kind, late

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        if not self._late:
            self._schedule()

    def _schedule(self) -> None:
        def forward(now: int) -> None:
            self.context.forward(Record("time", str(now), now))

        self.context.schedule(10, self._kind, forward)

    def process(self, record: Record[str, str]) -> None:
        if self._late:
            self._schedule()


def scheduling(kind: PunctuationType, late: bool = False) -> BatchRunner:
    builder = StreamsBuilder()
    builder.stream("in").process(lambda: Scheduling(kind, late)).to("out")
    return BatchRunner(builder.build(), CONFIG)


def test_punctuator_of_stream_time_keeps_its_next_time() -> None:
    runner = scheduling(PunctuationType.STREAM_TIME)
    for timestamp in (5, 7, 12, 19, 31):
        runner.run([record("in", "a", "b", timestamp)])
    # The first time is the first record; then the multiples of 10 ms from 0 on.
    assert [r.value for r in runner.produced["out"]] == [b"5", b"12", b"31"]


def test_punctuator_of_the_wall_clock_is_refused_by_the_name_of_its_node() -> None:
    runner = scheduling(PunctuationType.WALL_CLOCK_TIME)
    with pytest.raises(
        StreamsError, match="node KSTREAM-PROCESSOR-0000000001 schedules a punctuator of the wall clock"
    ):
        runner.run([record("in", "a", "b", 1)])


def test_punctuator_that_a_record_schedules_is_refused() -> None:
    runner = scheduling(PunctuationType.STREAM_TIME, late=True)
    with pytest.raises(StreamsError, match="schedules a punctuator outside of init"):
        runner.run([record("in", "a", "b", 1)])
