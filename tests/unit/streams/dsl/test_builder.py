"""The DSL refuses what it cannot build: unknown options, invalid names, windows and joins that do not fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pybroker.streams import (
    BufferConfig,
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    StreamsBuilder,
    StreamsError,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from pybroker.streams.errors import TopologyError

MINUTE = 60_000
TUMBLING = TimeWindows.of_size_with_no_grace(MINUTE)
SESSIONS = SessionWindows.of_inactivity_gap_with_no_grace(MINUTE)
UNTIL_CLOSE = Suppressed.until_window_closes(BufferConfig.unbounded())


def stream() -> Any:
    return StreamsBuilder().stream("in")


def twice(*, config: dict[str, str]) -> None:
    builder = StreamsBuilder()
    builder.stream(["a", "b"])
    builder.stream(["b", "c"])
    builder.build(config)


def versioned_join() -> None:
    builder = StreamsBuilder()
    table = builder.table("table", store="kept", history_retention=10)
    builder.stream("in").join(table, max, grace=20)
    builder.build()


def after_build() -> None:
    builder = StreamsBuilder()
    builder.stream("in").foreach(print)
    builder.build()
    builder.stream("other")


INVALID: dict[str, tuple[Callable[[], object], str]] = {
    "an unknown option": (
        lambda: stream().map_values(str, nam="x"),
        "unknown option 'nam' of map_values: expected one of",
    ),
    "a name that no topic can have": (lambda: stream().filter(bool, name="a b"), "invalid name 'a b' of filter"),
    "a store name that no topic can have": (lambda: stream().to_table(store="a/b"), "invalid store 'a/b' of to_table"),
    "a topic that cannot exist": (lambda: StreamsBuilder().stream("a b"), "invalid topic 'a b'"),
    "a topic that is no text": (lambda: StreamsBuilder().table(1), "invalid topic 1: expected a str"),  # type: ignore[arg-type]
    "join windows in windowed_by": (
        lambda: stream().group_by_key().windowed_by(JoinWindows(1, 1, 0)),
        "expected TimeWindows, UnlimitedWindows, SlidingWindows or SessionWindows",
    ),
    "final results of unlimited windows": (
        lambda: stream().group_by_key().windowed_by(UnlimitedWindows.of()).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE),
        "unlimited windows never close",
    ),
    "sessions without a merger": (
        lambda: stream().group_by_key().windowed_by(SESSIONS).aggregate(int, max),
        "expected a merger (key, one, other)",
    ),
    "a merger without sessions": (
        lambda: stream().group_by_key().windowed_by(TUMBLING).aggregate(int, max, max),
        "expected no merger without SessionWindows",
    ),
    "a retention below the window": (
        lambda: stream().group_by_key().windowed_by(TUMBLING).count(retention=1000),
        "invalid retention 1000 ms of store KSTREAM-AGGREGATE-STATE-STORE-0000000002: expected at least",
    ),
    "a join of streams without windows": (
        lambda: stream().join(stream(), max),
        "invalid arguments (builtin_function_or_method) of join after the other side: expected joiner, windows",
    ),
    "an outer join with a table": (
        lambda: stream().outer_join(StreamsBuilder().table("t"), max),
        "invalid right-hand side KTable of outer_join: expected a KStream",
    ),
    "a versioned store without a name": (
        lambda: StreamsBuilder().table("t", history_retention=10),
        "history_retention has no store beside it",
    ),
    "a grace that the table does not keep": (versioned_join, "expected a history_retention of at least the grace"),
    "a grace of a table without versions": (
        lambda: stream().join(StreamsBuilder().table("t"), max, grace=1),
        "the table is not versioned",
    ),
    "a suppression until windows close without windows": (
        lambda: StreamsBuilder().table("t").suppress(UNTIL_CLOSE),
        "window close time is only defined for windowed computations: got [root->KTABLE-SOURCE-0000000002]",
    ),
    "a suppression of a versioned table": (
        lambda: StreamsBuilder().table("t", store="s", history_retention=10).suppress(UNTIL_CLOSE),
        "expected a table without versions",
    ),
    "no partitions": (lambda: stream().repartition(partitions=0), "invalid partitions 0 of repartition"),
    "overlapping topics of two sources": (lambda: twice(config={}), "both read topic b, and differ in other topics"),
    "an optimisation that does not exist": (
        lambda: StreamsBuilder().build({"topology.optimization": "most"}),
        "invalid value 'most' for 'topology.optimization'",
    ),
    "an operation after build": (after_build, "the topology is built already"),
    "a default branch before a branch": (
        lambda: (lambda split: (split.default_branch(), split.branch(bool)))(stream().split()),
        "has its default branch already",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_cannot_be_built_is_refused_by_name(name: str) -> None:
    build, message = INVALID[name]
    with pytest.raises(StreamsError, match=re.escape(message)):
        build()


def test_two_resets_of_one_topic_are_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("in", offset_reset="earliest").foreach(print)
    builder.stream("in", offset_reset="latest").foreach(print)
    with pytest.raises(TopologyError, match="read the same topics with offset_reset 'earliest' and 'latest'"):
        builder.build()
