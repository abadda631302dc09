"""Topologies that are refused before a query starts, and which subtopologies need state."""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from pybroker.streams import INT64, STRING, StreamsBuilder
from pybroker.streams.errors import StreamsError, TopologyError
from pybroker.streams.suppressed import BufferConfig, Suppressed
from pybroker.streams.topology.topology import Topology
from pybroker_spark.streams import settings
from pybroker_spark.streams.pickling import pickle_plan
from pybroker_spark.streams.plan import Plan, check

CONFIG = {
    "application.id": "app",
    "bootstrap.servers": "127.0.0.1:9",
    "default.key.serde": STRING,
    "default.value.serde": STRING,
}


def plan_of(topology: Topology) -> Plan:
    parsed = settings.parse(CONFIG)
    return Plan(topology, parsed.config, parsed.handlers, {}, topology.subtopologies())


def global_table(builder: StreamsBuilder) -> None:
    table = builder.global_table("global")
    builder.stream("in").join(table, lambda key, _: key, lambda one, two: one + two).to("out")


def pattern(builder: StreamsBuilder) -> None:
    builder.stream(re.compile("in-.*")).to("out")


def offset_reset(builder: StreamsBuilder) -> None:
    builder.stream("in", offset_reset="none").to("out")


def partitioner_of_an_extractor(builder: StreamsBuilder) -> None:
    builder.stream("in").to(lambda key, value, context: "out", partitioner=lambda topic, key, value, count: 0)


def buffer_without_logging(builder: StreamsBuilder) -> None:
    limit = Suppressed.until_time_limit(timedelta(seconds=1), BufferConfig.unbounded().with_logging_disabled())
    builder.table("in").suppress(limit).to_stream().to("out")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (global_table, "node KTABLE-SOURCE-0000000002 fills the global store global-STATE-STORE-0000000000"),
        (pattern, r"source KSTREAM-SOURCE-0000000000 subscribes to the pattern 'in-\.\*'"),
        (offset_reset, "invalid offset_reset 'none' of source KSTREAM-SOURCE-0000000000"),
        (partitioner_of_an_extractor, "sink KSTREAM-SINK-0000000001 has a topic extractor and a partitioner"),
        (buffer_without_logging, "node KTABLE-SUPPRESS-0000000003 has the buffer .* with logging disabled"),
    ],
)
def test_node_that_cannot_run_is_refused_by_its_name(build: Callable[[StreamsBuilder], None], message: str) -> None:
    builder = StreamsBuilder()
    build(builder)
    with pytest.raises(TopologyError, match=message):
        check(builder.build())


def test_node_that_cannot_be_pickled_is_refused_by_its_name() -> None:
    lock = threading.Lock()

    def locked(value: str) -> str:
        with lock:
            return value

    builder = StreamsBuilder()
    builder.stream("in").map_values(str.upper).map_values(locked).to("out")
    with pytest.raises(TopologyError, match=r"node KSTREAM-MAPVALUES-0000000002 cannot be pickled .*: cannot pickle"):
        pickle_plan(plan_of(builder.build()))


def test_serdes_and_functions_of_a_program_are_pickled() -> None:
    limit = 3
    builder = StreamsBuilder()
    words = builder.stream("in").filter(lambda _, value: len(value) > limit).group_by_key()
    words.count(store="counts").to_stream().to("out", value_serde=INT64)
    plan = pickle.loads(pickle_plan(plan_of(builder.build())))
    sink = plan.topology.nodes["KSTREAM-SINK-0000000004"]
    assert sink.value_serde.serialize(258) == bytes([0, 0, 0, 0, 0, 0, 1, 2])


def test_only_a_subtopology_of_one_topic_and_of_operators_without_state_is_stateless() -> None:
    builder = StreamsBuilder()
    builder.stream("a").map_values(str.upper).to("out")
    builder.stream("b").group_by_key().count(store="counts")
    builder.stream("c").merge(builder.stream("d")).to("out")
    builder.stream("e", timestamp_extractor=lambda record, time: 1).to("out")
    plan = plan_of(builder.build())
    stateless = {number for number in range(len(plan.subtopologies)) if plan.is_stateless(number)}
    assert [sorted(plan.sources(number)) for number in stateless] == [["a"]]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("num.stream.threads", 2, "Spark starts the tasks"),
        ("commit.interval.ms", 100, "each micro-batch is a commit: set the trigger"),
        ("state.dir", "/tmp", "the state is in Spark's checkpoint"),
        ("restore.consumer.max.poll.records", 5, "reads without a consumer"),
        ("processing.guarantee", "at_least_once", "expected exactly_once_v2 or no value"),
    ],
)
def test_setting_without_effect_on_spark_is_refused(key: str, value: object, reason: str) -> None:
    with pytest.raises(StreamsError, match=f"invalid value {value!r} for '{re.escape(key)}': .*{reason}"):
        settings.parse({**CONFIG, key: value})


def test_settings_of_clients_become_options_of_the_source_and_of_the_sink() -> None:
    parsed = settings.parse(
        {
            **CONFIG,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "user",
            "sasl.password": "secret",
            "producer.linger.ms": 5,
        }
    )
    common = {
        "kafka.bootstrap.servers": "127.0.0.1:9",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "user",
        "kafka.sasl.password": "secret",
    }
    assert settings.read_options(parsed) == {**common, "kafka.isolation.level": "read_committed"}
    assert settings.write_options(parsed) == {**common, "kafka.linger.ms": "5"}
