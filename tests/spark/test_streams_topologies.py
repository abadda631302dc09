"""Many topologies as one query of Spark: the records are those of `TopologyTestDriver`, over restarts of the query."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pybroker.streams.runtime.collector import ProducedRecord
from pybroker.streams.testing import TopologyTestDriver
from pybroker.testing import Broker
from tests.support import streams_spec
from tests.support.spark_streams import Application, create_topics, in_order_of_a_task, renamed
from tests.support.streams_batches import BatchRunner, lines, sent
from tests.support.streams_generator import random_topology
from tests.support.streams_inputs import random_inputs, topics_of
from tests.support.streams_steps import Step
from tests.support.streams_topologies import ALONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

COUNT = int(os.environ.get("SPARK_STREAMS_QUERIES", "1"))
TOPOLOGIES_OF_A_QUERY = int(os.environ.get("SPARK_STREAMS_TOPOLOGIES_OF_A_QUERY", "4"))
ROUNDS = 2
RECORDS = 60
CHOSEN = (
    "hopping_reduce",
    "tumbling_suppressed",
    "session_aggregate",
    "sliding_emit_on_close",
    "suppress_records",
    "stream_table_join",
    "stream_table_left_join_grace",
    "stream_outer_join",
    "table_outer_join_versioned",
    "foreign_left_join",
    "process_collect_by_stream_time",
    "merge",
)
"""Topologies that need each kind of state, and one without state."""


Produced = Mapping[str, list[ProducedRecord]]


def rounds_of(steps: Sequence[Step], dice: random.Random) -> list[list[ProducedRecord]]:
    """Return the records of each round, in the order in which one task takes the records of the round."""
    records = [sent(given) for given in random_inputs(dice, topics_of(steps), RECORDS) if "topic" in given]
    size = len(records) // ROUNDS + 1
    return [in_order_of_a_task(records[at : at + size]) for at in range(0, len(records), size)]


def run(
    spark: SparkSession, servers: str, parts: Mapping[str, Sequence[Step]], directory: Path, seed: int
) -> tuple[Produced, Produced, Produced]:
    """Run topologies as one query. Return its records by topic, those of micro-batches here, and those of the driver.

    Micro-batches fix the order in which a task gets the records of repartition topics, so these topologies are compared
    with the same micro-batches in this process. Other topologies are compared with the test driver too.
    """
    config = streams_spec.configuration({"statestore.cache.max.bytes": "0"}) | {"application.id": directory.name}
    all_steps = [step for name, steps in parts.items() for step in renamed(steps, f"{directory.name}-{name}-")]
    topology = streams_spec.Plan().build(all_steps, config)
    runner = BatchRunner(streams_spec.Plan().build(all_steps, config), config)
    rounds: list[list[ProducedRecord]] = [[] for _ in range(ROUNDS)]
    expected: dict[str, list[ProducedRecord]] = {}
    for name, steps in parts.items():
        part = renamed(steps, f"{directory.name}-{name}-")
        its_rounds = rounds_of(part, random.Random(f"{seed} {name}"))
        for number, records in enumerate(its_rounds):
            rounds[number] += records
        expected |= driven(part, its_rounds, config)
    outputs = [step["topic"] for step in all_steps if step["op"] == "to"]
    create_topics(servers, {*topics_of(all_steps), *outputs})
    application = Application(spark, servers, topology, config, directory)
    for records in rounds:
        runner.run(records)
        application.round(records)
    return application.records(outputs), runner.produced, expected


def driven(
    steps: Sequence[Step], rounds: Sequence[Sequence[ProducedRecord]], config: Mapping[str, object]
) -> dict[str, list[ProducedRecord]]:
    """Return the records of the test driver by topic. A topology with repartition topics has none."""
    topology = streams_spec.Plan().build(steps, dict(config))
    if topology.internal_topics:
        return {}
    with TopologyTestDriver(topology, config) as driver:
        for record in (record for records in rounds for record in records):
            assert record.timestamp is not None
            driver.pipe_record(record.topic, record.key, record.value, record.timestamp, record.headers)
        return {step["topic"]: driver.produced(step["topic"]) for step in steps if step["op"] == "to"}


def test_each_kind_of_state_continues_after_a_restart(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    parts = {name: ALONE[name] for name in CHOSEN}
    directory = tmp_path / "kinds"
    directory.mkdir()
    found, batches, driver = run(spark, broker.bootstrap_servers, parts, directory, 1)
    assert {topic: lines(found[topic]) for topic in found} == {topic: lines(batches.get(topic, ())) for topic in found}
    assert {topic: lines(found[topic]) for topic in driver} == {topic: lines(driver[topic]) for topic in driver}
    assert min(sum(map(len, found.values())), sum(map(len, driver.values()))) > len(parts)


@pytest.mark.parametrize("number", range(COUNT))
def test_random_topologies_have_the_records_of_the_test_driver(
    spark: SparkSession, broker: Broker, tmp_path: Path, number: int
) -> None:
    seeds = range(number * TOPOLOGIES_OF_A_QUERY, (number + 1) * TOPOLOGIES_OF_A_QUERY)
    parts = {str(seed): random_topology(random.Random(seed)) for seed in seeds}
    directory = tmp_path / f"random-{number}"
    directory.mkdir()
    found, batches, driver = run(spark, broker.bootstrap_servers, parts, directory, number)
    assert {topic: lines(found[topic]) for topic in found} == {topic: lines(batches.get(topic, ())) for topic in found}
    assert {topic: lines(found[topic]) for topic in driver} == {topic: lines(driver[topic]) for topic in driver}
    assert min(sum(map(len, found.values())), sum(map(len, driver.values()))) > len(parts)
