"""Which topologies run on batches, and what they do with rows that they refuse."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow
import pytest

from pybroker.streams import (
    BYTES,
    INT64,
    JSON,
    STRING,
    KStream,
    Serde,
    StreamsBuilder,
    TopologyError,
    col,
    json_columns,
    select,
)
from pybroker.streams.columns.program import (
    ColumnProgram,
    NotColumnarError,
    RefusedBatchError,
    compiled,
    uses_expressions,
)
from pybroker.streams.config import parse_config
from pybroker.streams.timestamps import log_and_skip_on_invalid_timestamp
from tests.support.column_rows import batch, rows_of

Stream = KStream[str, dict[str, object]]
ROW = json_columns(user=str, amount=float)


def _program(build: Callable[[Stream], object], serde: Serde[dict[str, object]] = ROW) -> ColumnProgram:
    builder = StreamsBuilder()
    build(builder.stream("in", key_serde=STRING, value_serde=serde))
    return compiled(builder.build(), parse_config({}, "app", 0))[0]


def test_filter_and_projection_write_json() -> None:
    program = _program(
        lambda stream: (
            stream.filter(col("amount") > 1)
            .map_values(select("user", twice=col("amount") * 2))
            .to("out", value_serde=JSON)
        )
    )
    rows = [("a", '{"user": "tea", "amount": 1.5}', 10), ("b", '{"amount": 1}', 20), ("c", '{"amount": 4}', 30)]
    (output,) = program.run("in", batch(rows))
    assert output.topic == "out"
    assert rows_of(output.rows) == [
        (b"a", b'{"user":"tea","twice":3.0}', 10),
        (b"c", b'{"user":null,"twice":8.0}', 30),
    ]


def test_rows_reach_every_sink_once() -> None:
    def build(stream: Stream) -> None:
        rich, poor = stream.filter(col("amount") > 1), stream.filter_not(col("amount") > 1)
        rich.to("rich")
        rich.merge(poor).to("all", value_serde=JSON, key_serde=STRING)

    outputs = _program(build).run("in", batch([("a", '{"amount": 2}', 1), ("b", '{"amount": 0}', 2), ("c", None, 3)]))
    found = {
        topic: [row for each in outputs if each.topic == topic for row in rows_of(each.rows)]
        for topic in ("rich", "all")
    }
    assert found["rich"] == [(b"a", b'{"user":null,"amount":2.0}', 1)]
    # A tombstone stays a tombstone, and the filter that it does not pass keeps it in the other branch.
    assert sorted(found["all"]) == [
        (b"a", b'{"user":null,"amount":2.0}', 1),
        (b"b", b'{"user":null,"amount":0.0}', 2),
        (b"c", None, 3),
    ]


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda s: s.filter(lambda _k, v: v["amount"] > 1).to("out"), "FILTER-0000000001 is not a filter"),
        (lambda s: s.map_values(lambda v: v).to("out"), "MAPVALUES-0000000001 is not a filter"),
        (lambda s: s.filter(col("amount")).to("out"), r"the predicate col\('amount'\) is not a bool"),
        (lambda s: s.to("out", key_serde=BYTES), "SINK-0000000001 has another key serde than the source"),
        (lambda s: s.to("out", value_serde=INT64), "SINK-0000000001 has the value serde int64: expected JSON"),
        (lambda s: s.to(lambda _k, _v, _c: "out"), "SINK-0000000001 has a topic extractor or a partitioner"),
        (
            lambda s: s.to("out", partitioner=lambda _t, _k, _v, _n: 0),
            "SINK-0000000001 has a topic extractor or a part",
        ),
        (lambda s: s.repartition().to("out"), "FILTER-0000000003 is not a filter or a projection by column expr"),
        (lambda s: s.group_by_key().count(), "AGGREGATE-.* is not a filter"),
    ],
)
def test_node_that_needs_records_is_named(build: Callable[[Stream], object], reason: str) -> None:
    with pytest.raises(NotColumnarError, match=reason):
        _program(build)


def test_serde_and_extractor_that_need_records_are_named() -> None:
    with pytest.raises(NotColumnarError, match="SOURCE-0000000000 has the value serde json: expected json_columns"):
        _program(lambda stream: stream.to("out"), JSON)
    builder = StreamsBuilder()
    builder.stream("in", key_serde=STRING, value_serde=ROW, timestamp_extractor=log_and_skip_on_invalid_timestamp).to(
        "out"
    )
    with pytest.raises(NotColumnarError, match="SOURCE-0000000000 has a timestamp extractor"):
        compiled(builder.build(), parse_config({}, "app", 0))


def test_unknown_field_is_refused_before_start() -> None:
    with pytest.raises(TopologyError, match="unknown field 'amuont': expected one of user, amount"):
        _program(lambda stream: stream.filter(col("amuont") > 1).to("out"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("a", '{"amount": "1"}', 1), "row 0: invalid type: string"),
        (("a", "{", 1), "row 0: EOF while parsing"),
        (("a", "{}", -1), "a record has no timestamp"),
    ],
)
def test_batch_with_an_invalid_row_is_refused(row: tuple[str, str, int], reason: str) -> None:
    with pytest.raises(RefusedBatchError, match=reason):
        _program(lambda stream: stream.to("out")).run("in", batch([row]))


def test_key_that_is_not_text_is_refused() -> None:
    rows = batch([("a", "{}", 1)])
    broken = rows.set_column(0, "key", pyarrow.array([b"\xff"]))
    with pytest.raises(RefusedBatchError, match="UTF8"):
        _program(lambda stream: stream.to("out")).run("in", broken)


def test_only_expressions_make_a_topology_columnar() -> None:
    plain, columns = StreamsBuilder(), StreamsBuilder()
    plain.stream("in").filter(lambda _k, _v: True).to("out")
    columns.stream("in").filter(col("x") > 1).to("out")
    assert not uses_expressions(plain.build())
    assert uses_expressions(columns.build())
