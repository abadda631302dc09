"""Starts a topology as one streaming query: sources, operators with and without state, and the exactly-once sink.

Owns the plan of the query and the settings of its session. Must not know records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sf

from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.errors import StreamsError
from pybroker.streams.topology.topology import Topology
from pybroker_spark.source import datasource
from pybroker_spark.streams import checkpoint as checkpoints
from pybroker_spark.streams import operators, plan, settings, topics
from pybroker_spark.streams.pickling import pickle_plan
from pybroker_spark.streams.plan import Plan
from pybroker_spark.streams.task import BatchTask, KeptTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT: Final = "pybroker"
STATE: Final[Mapping[str, str]] = {
    # The only provider with states of several variables.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A commit uploads the changes of a batch, not the files of RocksDB.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""The settings of a query with state. The session keeps its own values."""
OF_THE_SOURCE: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger", "maxTriggerDelay")
OF_THE_SINK: Final = ("exactly.once",)
OF_THE_QUERY: Final = ("queryName",)
OFFSETS: Final = {"earliest": -2, "latest": -1}


def run(
    topology: Topology,
    spark: SparkSession,
    config: Mapping[str, Any],
    *,
    checkpoint: str,
    trigger: Mapping[str, Any] | None = None,
    options: Mapping[str, str] | None = None,
) -> StreamingQuery:
    """Start a topology as a streaming query, and return the query.

    Args:
        topology: the topology. Its functions are pickled to the workers.
        spark: the session.
        config: Kafka's keys: `application.id`, `bootstrap.servers`, default serdes, `statestore.cache.max.bytes`,
            exception handlers, `topic.` and settings of clients. A key without effect on Spark is refused.
        checkpoint: the directory of the query. It has the state and the offsets of the application.
        trigger: the arguments of Spark's `trigger`, for example `{"processingTime": "1 second"}`.
        options: `maxOffsetsPerTrigger`, `minOffsetsPerTrigger`, `maxBytesPerTrigger`, `maxTriggerDelay`,
            `exactly.once` and `queryName`.

    Raises:
        TopologyError: a node cannot run on Spark or cannot be pickled. The message has its name and the reason.
        StreamsError: a setting is refused, a topic is missing, or the checkpoint is of another topology.
        ClientError: no broker responds.
    """
    plan.check(topology)
    parsed = settings.parse(config)
    given = dict(options or {})
    _check_options(given, trigger or {}, topology)
    found = topics.prepare(topology, parsed)
    its_plan = Plan(topology, parsed.config, parsed.handlers, found, topology.subtopologies())
    _check_start(its_plan)
    pickled = pickle_plan(its_plan)
    checkpoints.check(spark, checkpoint, parsed.config.application_id, _description(topology))
    datasource.register(spark)
    rows = _results(
        spark, its_plan, pickled, {**settings.read_options(parsed), **_chosen(given, OF_THE_SOURCE)}, parsed
    )
    writer = rows.writeStream.format(FORMAT).outputMode("append").option("checkpointLocation", checkpoint)
    writer = writer.options(**settings.write_options(parsed), **_chosen(given, (*OF_THE_SINK, *OF_THE_QUERY)))
    if trigger:
        writer = writer.trigger(**trigger)
    with _settings(spark, STATE):
        return writer.start()


def _description(topology: Topology) -> str:
    """Return everything that the state of a query depends on: nodes, stores, and the layouts of their keys."""
    layouts = (f"Store {name}: {topology.stores[name].builder.spec.layout}" for name in sorted(topology.stores))
    return "\n".join([str(topology.describe()), *layouts])


def _check_options(given: Mapping[str, str], trigger: Mapping[str, Any], topology: Topology) -> None:
    known = (*OF_THE_SOURCE, *OF_THE_SINK, *OF_THE_QUERY)
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise StreamsError(f"unknown options {', '.join(unknown)}: expected some of {', '.join(known)}")
    if topology.internal_topics and ("availableNow" in trigger or "once" in trigger):
        raise StreamsError(
            f"invalid trigger {dict(trigger)}: expected processingTime. The query would end before it reads what it "
            f"writes to repartition topic {min(topology.internal_topics)}"
        )
    if "realTime" in trigger or "continuous" in trigger:
        raise StreamsError(f"invalid trigger {dict(trigger)}: expected processingTime: it is the only one with state")


def _check_start(its_plan: Plan) -> None:
    """Start a task of each subtopology in memory, which raises the errors of serdes, stores and punctuators."""
    for number, nodes in enumerate(its_plan.subtopologies):
        if not its_plan.topology.is_global(nodes):
            task = BatchTask(its_plan, number, f"{number}_0", KeptTask())
            task.begin({})
            task.close()


def _results(
    spark: SparkSession, its_plan: Plan, pickled: bytes, options: Mapping[str, str], parsed: ApplicationSettings
) -> DataFrame:
    """Return the records that the topology sends, as rows of the sink."""
    subtopology_of = {
        topic: number for number in range(len(its_plan.subtopologies)) for topic in its_plan.sources(number)
    }
    without = {topic: number for topic, number in subtopology_of.items() if its_plan.is_stateless(number)}
    within = {topic: number for topic, number in subtopology_of.items() if topic not in without}
    frames = []
    if without:
        rows = _source(spark, its_plan, without, options, parsed)
        frames.append(rows.mapInArrow(operators.stateless(pickled, without), operators.OUTPUT))
    if within:
        rows = _source(spark, its_plan, within, options, parsed)
        numbers = sf.create_map(*(sf.lit(item) for pair in within.items() for item in pair))
        task = sf.concat_ws("_", numbers[sf.col("topic")], sf.col("partition"))
        processor = operators.TopologyProcessor(pickled, sorted(set(within.values())))
        grouped = rows.withColumn("task", task).groupBy("task")
        frames.append(grouped.transformWithState(processor, operators.OUTPUT, "Append", "None"))
    return reduce(lambda one, other: one.union(other), frames).withColumn("timestamp", sf.timestamp_millis("timestamp"))


def _source(
    spark: SparkSession,
    its_plan: Plan,
    subtopology_of: Mapping[str, int],
    options: Mapping[str, str],
    parsed: ApplicationSettings,
) -> DataFrame:
    default = parsed.clients.main["auto.offset.reset"]
    starting = {}
    for topic, number in subtopology_of.items():
        node = its_plan.sources(number)[topic]
        internal = any(its_plan.name_of(name) == topic for name in its_plan.topology.internal_topics)
        reset = "earliest" if internal else node.offset_reset or default
        if reset not in OFFSETS:
            raise StreamsError(f"invalid value {reset!r} for 'auto.offset.reset': expected earliest or latest")
        starting[topic] = dict.fromkeys(map(str, range(its_plan.partitions[topic])), OFFSETS[reset])
    reader = spark.readStream.format(FORMAT).options(**options).option("subscribe", ",".join(sorted(subtopology_of)))
    reader = reader.option("startingOffsets", json.dumps(starting)).option("columns", ",".join(operators.INPUT))
    return reader.load().withColumn("timestamp", sf.unix_millis("timestamp"))


def _chosen(given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: given[name] for name in names if name in given}


@contextmanager
def _settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set values of a session while a query starts. The query copies them."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
