"""The test driver: time, errors with positions, its topics, and output to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybroker.streams import (
    INT64,
    STRING,
    FixedKeyProcessor,
    InvalidStateStoreError,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    StreamsError,
    Topology,
)
from pybroker.streams.testing import TopologyTestDriver

TEXT = {"default.key.serde": STRING, "default.value.serde": STRING}


def driver_of(build: Any, config: dict[str, Any] | None = None) -> TopologyTestDriver:
    builder = StreamsBuilder()
    build(builder)
    return TopologyTestDriver(builder.build(config), {**TEXT, **(config or {})}, initial_wall_clock_ms=1000)


def test_records_without_a_timestamp_get_the_time_of_their_topic() -> None:
    with driver_of(lambda builder: builder.stream("in").to("out")) as driver:
        topic = driver.create_input_topic("in", STRING, STRING, auto_advance_ms=5)
        topic.pipe_key_values([("a", "1"), ("b", "2")])
        topic.advance_time(100)
        topic.pipe_input("c", None, headers=(("h", b"x"),))
        records = driver.create_output_topic("out", STRING, STRING).read_records()
    assert [(one.key, one.value, one.timestamp, one.headers) for one in records] == [
        ("a", "1", 1000, ()),
        ("b", "2", 1005, ()),
        ("c", None, 1110, (("h", b"x"),)),
    ]


def test_an_output_topic_is_read_once() -> None:
    with driver_of(lambda builder: builder.stream("in").to("out")) as driver:
        topic = driver.create_output_topic("out", STRING, STRING)
        assert topic.is_empty
        driver.create_input_topic("in", STRING, STRING).pipe_key_values([("a", "1"), ("a", "2"), ("b", "3")])
        assert len(topic) == 3
        assert topic.read_value() == "1"
        assert topic.read_table() == {"a": "2", "b": "3"}
        with pytest.raises(LookupError, match="topic out has no more records"):
            topic.read_record()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"default.key.serd": STRING}, "unknown settings default.key.serd: expected some of application.id"),
        ({"default.key.serde": "text"}, "invalid value 'text' for 'default.key.serde': expected a Serde or one of"),
        ({"application.id": ""}, "invalid value '' for 'application.id': expected a str that is not empty"),
        ({"max.task.idle.ms": "soon"}, "invalid value 'soon' for 'max.task.idle.ms': expected an integer >= -1"),
        ({"processing.guarantee": "exactly_once"}, "expected at_least_once or exactly_once_v2"),
    ],
)
def test_a_setting_that_cannot_be_honoured_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(StreamsError, match=message):
        TopologyTestDriver(Topology(), config)


def test_a_node_without_a_serde_is_refused_at_the_start() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with pytest.raises(StreamsError, match="has no serde for the keys: give key_serde to the operation, or set"):
        TopologyTestDriver(builder.build())


def test_an_unknown_topic_and_an_unknown_store_are_named() -> None:
    with driver_of(lambda builder: builder.stream("in").group_by_key().count(store="counts")) as driver:
        with pytest.raises(StreamsError, match="unknown topic 'input': expected one of in"):
            driver.pipe_record("input", None, None, 0)
        with pytest.raises(InvalidStateStoreError, match="unknown state store 'count': expected one of counts"):
            driver.state_store("count")


def test_a_failing_operator_names_the_record() -> None:
    with driver_of(lambda builder: builder.stream("in").map_values(int).foreach(print)) as driver:
        with pytest.raises(
            StreamsError, match="task 0_0 failed at record in-0 offset 0 of source KSTREAM-SOURCE-"
        ) as error:
            driver.create_input_topic("in", STRING, STRING).pipe_input("k", "one")
        assert isinstance(error.value.__cause__, ValueError)


def test_bytes_that_a_serde_rejects_name_the_record() -> None:
    with (
        driver_of(lambda builder: builder.stream("in", value_serde=INT64).to("out")) as driver,
        pytest.raises(StreamsError, match=r"deserialize record in-0 offset 0 of source .*expected 8 bytes, found 2"),
    ):
        driver.pipe_record("in", b"k", b"12", 5)


def test_a_sink_with_the_wrong_serde_names_itself() -> None:
    with (
        driver_of(lambda builder: builder.stream("in").map_values(len).to("out")) as driver,
        pytest.raises(StreamsError, match="sink KSTREAM-SINK-0000000002 cannot write to topic out: serde 'string'"),
    ):
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "one")


class Ticks(Processor[str, str]):
    """Forwards the time of each call of its two punctuators."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.schedule = context.schedule(100, PunctuationType.WALL_CLOCK_TIME, self.tick)
        context.schedule(10, PunctuationType.STREAM_TIME, lambda now: self.forward("stream", now))

    def tick(self, now: int) -> None:
        self.forward("wall", now)
        if now >= 1400:
            self.schedule.cancel()

    def forward(self, clock: str, now: int) -> None:
        self.context.forward(Record(clock, str(now), now))

    def process(self, record: Record[str, str]) -> None:
        """Forward nothing."""


def test_punctuators_follow_the_two_clocks_of_the_driver() -> None:
    with driver_of(lambda builder: builder.stream("in").process(Ticks).to("out")) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        ticks = driver.create_output_topic("out", STRING, STRING)
        driver.advance_wall_clock_time(99)
        assert ticks.is_empty
        driver.advance_wall_clock_time(1)
        topic.pipe_input("k", "v", timestamp=55)
        topic.pipe_input("k", "v", timestamp=59)
        topic.pipe_input("k", "v", timestamp=60)
        driver.advance_wall_clock_time(350)  # the times 1200, 1300 and 1400 have passed: one call
        driver.advance_wall_clock_time(1000)  # cancelled
        assert ticks.read_key_values() == [("wall", "1100"), ("stream", "55"), ("stream", "60"), ("wall", "1450")]


class Renames(FixedKeyProcessor[str, str]):
    """Forwards another key, which the class of its base forbids."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_key("other"))


def test_a_processor_of_values_cannot_change_keys() -> None:
    with (
        driver_of(lambda builder: builder.stream("in").process_values(Renames).to("out")) as driver,
        pytest.raises(StreamsError, match="forwards key 'other' of a record with key 'k': expected the same key"),
    ):
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v")


class Reads(Processor[str, str]):
    """Opens a store that is not connected to it."""

    def init(self, context: ProcessorContext) -> None:
        context.state_store("counts")


def test_a_store_that_is_not_connected_is_refused() -> None:
    with pytest.raises(StreamsError, match="has no access to store 'counts': connect the store to the node"):
        driver_of(lambda builder: builder.stream("in").process(Reads))


def test_a_task_waits_for_records_of_all_partitions_if_it_is_set_so() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream(["one", "two"]).to("out")

    with driver_of(build, {"max.task.idle.ms": 50}) as driver:
        one, two = (driver.create_input_topic(name, STRING, STRING) for name in ("one", "two"))
        out = driver.create_output_topic("out", STRING, STRING)
        one.pipe_input("a", "late", timestamp=20)
        assert out.is_empty
        two.pipe_input("b", "early", timestamp=10)
        assert out.read_key_values() == [("b", "early")]
        driver.advance_wall_clock_time(50)
        assert out.read_key_values() == [("a", "late")]


def test_streams_and_tables_are_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / "records.txt"

    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("in")
        stream.write_as_text(path, label="cities")
        stream.to_table().to_stream().write_as_text(path, mapper=lambda key, value: f"{key}->{value}")

    with driver_of(build) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_key_values([("jetty", "上海"), ("jetty", None)])
    assert sorted(path.read_text(encoding="utf-8").splitlines()) == [
        "[KTABLE-TOSTREAM-0000000004]: jetty->None",
        "[KTABLE-TOSTREAM-0000000004]: jetty->上海",
        "[cities]: jetty , null",
        "[cities]: jetty , 上海",
    ]


def counting() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("words", key_serde=STRING, value_serde=STRING)
    words.group_by_key(key_serde=STRING, value_serde=STRING).count(store="counts")
    return builder.build()


def test_state_dir_keeps_persistent_stores_in_rocksdb_until_close(tmp_path: Path) -> None:
    with TopologyTestDriver(counting(), {**TEXT, "state.dir": str(tmp_path), "application.id": "app"}) as driver:
        words = driver.create_input_topic("words", STRING, STRING)
        for _ in range(3):
            words.pipe_input("k", "v")
        store = driver.state_store("counts")
        assert (store.get("k").value, store.persistent, store.uncommitted_bytes) == (3, True, 0)
        assert (tmp_path / "app" / "0_0" / "rocksdb" / "counts" / "CURRENT").exists()
        with pytest.raises(StreamsError, match="is locked"):
            TopologyTestDriver(counting(), {**TEXT, "state.dir": str(tmp_path), "application.id": "app"})
    assert [path.name for path in (tmp_path / "app").iterdir() if path.is_dir()] == []


def test_default_dsl_store_in_memory_uses_no_database(tmp_path: Path) -> None:
    config = {**TEXT, "state.dir": tmp_path, "default.dsl.store": "in_memory"}
    with TopologyTestDriver(counting(), config) as driver:
        driver.create_input_topic("words", STRING, STRING).pipe_input("k", "v")
        assert not driver.state_store("counts").persistent
    with pytest.raises(StreamsError, match=r"'default\.dsl\.store': expected rocksDB or in_memory"):
        TopologyTestDriver(counting(), {**TEXT, "default.dsl.store": "heap"})
    with pytest.raises(StreamsError, match=r"invalid value 5 for 'state\.dir'"):
        TopologyTestDriver(counting(), {**TEXT, "state.dir": 5})


def test_start_that_fails_releases_the_state_directory(tmp_path: Path) -> None:
    class Failing(Processor[str, str]):
        def init(self, context: ProcessorContext) -> None:
            raise StreamsError("no")

        def process(self, record: Record[str, str]) -> None:
            raise NotImplementedError

    config = {**TEXT, "state.dir": str(tmp_path), "application.id": "app"}
    builder = StreamsBuilder()
    builder.stream("words").process(Failing)
    with pytest.raises(StreamsError, match="no"):
        TopologyTestDriver(builder.build(), config)
    TopologyTestDriver(counting(), config).close()
