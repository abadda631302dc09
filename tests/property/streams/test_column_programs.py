"""Expressions have the same results on batches and record by record."""

from __future__ import annotations

import json
from math import copysign
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from pybroker.streams import JSON, STRING, Column, StreamsBuilder, StreamsError, col, json_columns, lit, select
from pybroker.streams.columns.program import RefusedBatchError, compiled
from pybroker.streams.config import parse_config
from pybroker.streams.testing import TopologyTestDriver
from pybroker.streams.topology.topology import Topology
from tests.support.column_rows import batch, rows_of

FIELDS: dict[str, type] = {"i": int, "j": int, "f": float, "g": float, "s": str, "t": str, "b": bool, "c": bool}
EDGES = (0, 1, -1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
Row = tuple[str | None, str | None, int]
"""Key, value as JSON, and timestamp in milliseconds."""


def _literals(kind: type) -> st.SearchStrategy[Any]:
    of: dict[type, st.SearchStrategy[Any]] = {
        int: st.one_of(st.sampled_from(EDGES), st.integers(-20, 20)),
        float: st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 0.5, 1e16, 1e300])),
        str: st.sampled_from(["", "a", "b", "ab", "é", "\U0001f600", '"', "\\n"]),
        bool: st.booleans(),
    }
    return of[kind]


@st.composite
def _expressions(draw: st.DrawFn, kind: type, depth: int = 3) -> Column:
    """An expression with results of one type."""
    names = [name for name, its in FIELDS.items() if its is kind]
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return col(draw(st.sampled_from(names))) if draw(st.booleans()) else lit(draw(_literals(kind)))
    below = depth - 1
    if draw(st.integers(0, 4)) == 0:
        return draw(_expressions(kind, below)).fill_null(draw(_expressions(kind, below)))
    if kind is bool:
        return draw(_predicates(below))
    if kind is str:
        return draw(_expressions(str, below))
    left, right = draw(_expressions(kind, below)), draw(_expressions(kind, below))
    if kind is float and draw(st.booleans()):
        left, right = draw(_expressions(int, below)), draw(_expressions(draw(st.sampled_from([int, float])), below))
        return left / right
    return draw(st.sampled_from([left + right, left - right, left * right]))


@st.composite
def _predicates(draw: st.DrawFn, depth: int) -> Column:
    choice = draw(st.integers(0, 3))
    if choice == 0:
        left, right = draw(_expressions(bool, depth)), draw(_expressions(bool, depth))
        return draw(st.sampled_from([left & right, left | right, ~left]))
    if choice == 1:
        return draw(_expressions(draw(st.sampled_from([int, float, str, bool])), depth)).is_null()
    kind = draw(st.sampled_from([int, float, str, bool]))
    other = draw(st.sampled_from([int, float])) if kind in (int, float) else kind
    left, right = draw(_expressions(kind, depth)), draw(_expressions(other, depth))
    return draw(
        st.sampled_from([left == right, left != right, left < right, left <= right, left > right, left >= right])
    )


@st.composite
def _topologies(draw: st.DrawFn) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde=STRING, value_serde=json_columns(**FIELDS))
    for _ in range(draw(st.integers(0, 2))):
        predicate = draw(_expressions(bool))
        stream = stream.filter(predicate) if draw(st.booleans()) else stream.filter_not(predicate)
    if draw(st.booleans()):
        kinds = draw(st.lists(st.sampled_from([int, float, str, bool]), min_size=1, max_size=3))
        columns = {f"x{at}": draw(_expressions(kind)) for at, kind in enumerate(kinds)}
        stream = stream.map_values(select("i", "s", **columns)).filter(col("i").is_null() | col("s").is_null() | True)
    stream.to("out", value_serde=JSON)
    return builder.build()


def _fields() -> st.SearchStrategy[dict[str, Any]]:
    of = {name: st.none() | _literals(kind).filter(_is_json) for name, kind in FIELDS.items()}
    return st.fixed_dictionaries({}, optional={**of, "other": st.sampled_from([None, [1, {"z": 2}], "x"])})


def _is_json(value: Any) -> bool:
    # Programs refuse negative zeros: decoders differ in the sign of the integer -0.
    return not isinstance(value, float) or (abs(value) < float("inf") and (value != 0 or copysign(1, value) > 0))


ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from(["k", "é"]),
        st.none() | _fields().map(json.dumps),
        st.integers(0, 2_000_000_000_000),
    ),
    min_size=1,
    max_size=12,
)
INVALID = st.sampled_from(
    [
        *('{"i": 1.5}', '{"i": 1.0}', '{"i": true}', '{"f": "1"}', '{"s": 1}', '{"b": 1}', "{", "null", "[1]", ""),
        *("{} {}", '{"i": 9223372036854775808}', '{"f": 1e400}', '{"s": "\\ud800"}', '{"i": 1, "i": 2}', '{"i": -0}'),
        *('{"f": -0}', '{"f": 1}', '{"f": 12345678901234567890}', '{"f": 0.1}', '{"f": 2.2250738585072011e-308}'),
        *(' {"i" :\n1 } ', '{"s": "\\u00e9\\ud83d\\ude00\\/"}', '{"f": 123456789012345678901234567890}'),
        *('{"other": 1e400}', '{"i": 1,}'),
    ]
)


def _by_record(topology: Topology, rows: list[Row]) -> list[tuple[bytes | None, bytes | None, int | None]]:
    with TopologyTestDriver(topology, {}) as driver:
        for key, value, timestamp in rows:
            driver.pipe_record(
                "in",
                None if key is None else key.encode(),
                None if value is None else value.encode(),
                timestamp,
            )
        return [(each.key, each.value, each.timestamp) for each in driver.produced("out")]


def _by_batch(topology: Topology, rows: list[Row]) -> list[tuple[bytes | None, bytes | None, int | None]]:
    program = compiled(topology, parse_config({}, "test", 0))[0]
    outputs = program.run("in", batch(rows))
    return [row for output in outputs for row in rows_of(output.rows)]


@settings(max_examples=150, deadline=None)
@given(_topologies(), ROWS)
def test_batches_equal_records(topology: Topology, rows: list[Row]) -> None:
    try:
        expected = _by_record(topology, rows)
    except StreamsError:
        event("a record fails")
        with pytest.raises(RefusedBatchError):
            _by_batch(topology, rows)
        return
    try:
        found = _by_batch(topology, rows)
    except RefusedBatchError as refused:
        # An integer that a float cannot express, and a divisor of zero that no record reaches, are left to records.
        event("refused")
        reason = str(refused)
    else:
        event("equal")
        assert found == expected
        return
    assert any(each in reason for each in ("not in range", "divide by zero", "overflow"))


@settings(max_examples=150, deadline=None)
@given(ROWS, INVALID)
def test_json_that_the_serde_refuses_is_refused(rows: list[Row], invalid: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in", key_serde=STRING, value_serde=json_columns(**FIELDS)).filter(lit(True)).to(
        "out", value_serde=JSON
    )
    topology = builder.build()
    rows = [*rows, ("k", invalid, 1)]
    try:
        found = _by_batch(topology, rows)
    except RefusedBatchError:
        return
    assert found == _by_record(topology, rows)
