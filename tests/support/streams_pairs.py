"""Pairs of operations, and topologies that the optimiser changes, to compare with Kafka Streams."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.streams_steps import Step, op, steps
from tests.support.streams_topologies import (
    APPEND,
    BY_KEY,
    GLOBAL,
    GROUP,
    JOIN_WINDOWS,
    MERGED,
    MINUS,
    OTHER,
    OUT,
    STREAM,
    TABLE,
    TABLE2,
    TABLE_GROUP,
    TEXT,
    UNWINDOW,
    WINDOWS,
    Topologies,
)

CHANGES = {
    "filter": op("filter", fn="value_is_not_null"),
    "map": op("map", fn="key_by_first_char"),
    "map_values": op("map_values", fn="append_x"),
    "select_key": op("select_key", fn="last_char_of_value"),
    "flat_map": op("flat_map", fn="letters"),
    "flat_map_values": op("flat_map_values", fn="twice"),
    "process": op("process", fn="forward_twice"),
    "repartition": op("repartition"),
}
"""Operations from a stream to a stream: the first of a pair."""
ENDS: dict[str, list[Step]] = {
    "count": [BY_KEY, op("count"), TEXT, op("to_stream")],
    "reduce": [GROUP, op("reduce", fn="concat"), op("to_stream")],
    "tumbling": [BY_KEY, op("windowed_by", windows=WINDOWS["tumbling"]), APPEND, UNWINDOW],
    "session": [BY_KEY, op("windowed_by", windows=WINDOWS["session"]), MERGED, UNWINDOW],
    "sliding": [BY_KEY, op("windowed_by", windows=WINDOWS["sliding"]), op("reduce", fn="max_string"), UNWINDOW],
    "to_table": [op("to_table"), op("to_stream")],
    "stream_join": [op("join", with_="other", fn="concat_null_as_star", windows=JOIN_WINDOWS)],
    "outer_join": [op("outer_join", with_="other", fn="concat_null_as_star", windows=JOIN_WINDOWS)],
    "table_join": [op("left_join", with_="table", fn="concat_null_as_star")],
    "merge": [op("merge", with_="other")],
}
"""Operations on a stream that need keys or state: the second of a pair."""
TABLE_CHANGES: dict[str, list[Step]] = {
    "filter": [op("filter", fn="value_longer_than_3")],
    "map_values": [op("map_values", fn="null_if_b")],
    "map_values_stored": [op("map_values", fn="append_x", store="mapped")],
    "transform_values": [op("transform_values", fn="key_and_value")],
    "suppress": [op("suppress", until="time", wait=60)],
    "aggregate": [TABLE_GROUP, op("aggregate", fn="append", **MINUS)],
    "join": [op("join", with_="table2", fn="concat_null_as_star")],
    "outer_join": [op("outer_join", with_="table2", fn="concat_null_as_star")],
    "foreign_join": [op("left_join_on", with_="table2", extractor="first_char_of_value", fn="concat_null_as_star")],
}
"""Operations from a table to a table: both of a pair."""


def _without_store(given: Sequence[Step]) -> list[Step]:
    return [{name: value for name, value in step.items() if name != "store"} for step in given]


def _sides(given: Sequence[Step]) -> list[Step]:
    """Return the sources that the steps have as their other sides."""
    needed = {step.get("with") for step in given}
    return [source for source in (OTHER, TABLE, TABLE2) if source["id"] in needed]


PAIRED: Topologies = {
    f"{one}_{other}": steps(*_sides(ENDS[other]), STREAM, CHANGES[one], *ENDS[other], OUT)
    for one in CHANGES
    for other in ENDS
}
PAIRED |= {
    f"table_{one}_{other}": steps(
        *_sides([*TABLE_CHANGES[one], *TABLE_CHANGES[other]]),
        TABLE,
        *TABLE_CHANGES[one],
        *_without_store(TABLE_CHANGES[other]),
        op("to_stream"),
        OUT,
    )
    for one in TABLE_CHANGES
    for other in TABLE_CHANGES
}
OPTIMISED: Topologies = {
    "shared_repartition": steps(
        STREAM,
        op("map", id="mapped", fn="key_by_first_char"),
        BY_KEY,
        op("count"),
        TEXT,
        op("to_stream"),
        OUT,
        op("group_by_key", on="mapped"),
        op("reduce", fn="concat"),
        op("to_stream"),
        op("to", topic="out2"),
    ),
    "shared_repartition_with_join": steps(
        STREAM,
        op("select_key", id="mapped", fn="first_char_of_value"),
        BY_KEY,
        op("aggregate", fn="append"),
        op("to_stream"),
        OUT,
        OTHER,
        op("join", on="mapped", with_="other", fn="concat_null_as_star", windows=JOIN_WINDOWS),
        op("to", topic="out2"),
    ),
    "shared_repartition_after_values": steps(
        STREAM,
        op("map", id="mapped", fn="key_by_first_char"),
        op("map_values", fn="upper"),
        op("filter", fn="always"),
        BY_KEY,
        op("count"),
        TEXT,
        op("to_stream"),
        OUT,
        op("map_values", on="mapped", fn="append_x"),
        BY_KEY,
        op("reduce", fn="max_string"),
        op("to_stream"),
        op("to", topic="out2"),
    ),
    "merge_before_repartition": steps(
        STREAM,
        op("map", id="left", fn="key_by_first_char"),
        OTHER,
        op("map", id="right", fn="swap"),
        op("merge", id="merged", on="left", with_="right"),
        BY_KEY,
        op("count"),
        TEXT,
        op("to_stream"),
        OUT,
        op("group_by_key", on="merged"),
        op("aggregate", fn="append"),
        op("to_stream"),
        op("to", topic="out2"),
    ),
    "global_then_table": steps(
        GLOBAL,
        TABLE,
        STREAM,
        op("join", with_="global", selector="value", fn="concat_null_as_star"),
        op("left_join", with_="table", fn="concat_null_as_star"),
        OUT,
    ),
    "table_twice": steps(
        TABLE,
        op("filter", id="long", fn="value_longer_than_3"),
        op("group_by", on="table", fn="key_by_first_char"),
        op("count"),
        TEXT,
        op("to_stream"),
        OUT,
        op("to_stream", on="long"),
        op("to", topic="out2"),
    ),
}
"""Topologies that the optimiser changes, beside the self joins and tables of `ALONE`."""

UNNAMED = {"group_by_key", "group_by", "windowed_by", "cogroup", "state_store"}
"""Operations without a node of their own, or whose name is a topic's."""


def with_names(topology: Sequence[Step]) -> list[Step]:
    """Return the topology with a name for each node."""
    return [
        step
        if step["op"] in UNNAMED or "name" in step or step["op"] == "global_store"
        else {**step, "name": f"node-{number}"}
        for number, step in enumerate(topology)
    ]


def with_group_names(topology: Sequence[Step]) -> list[Step]:
    """Return the topology with a name for each repartition topic of a grouping."""
    return [
        {**step, "name": f"group-{number}"} if step["op"] in ("group_by", "group_by_key") else step
        for number, step in enumerate(topology)
    ]
