"""What the entries of a ledger say to an attempt, and how rows are compared and routed."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker_spark.sink.entries import Begun, Done, Entry, TopicMark, begun_tasks, parse_entry, place_of, write_entry
from pybroker_spark.sink.errors import LedgerError
from pybroker_spark.sink.routing import route, topics_of
from pybroker_spark.sink.rows import Bag, Sum, fingerprints
from pybroker_spark.sink.settings import forced_properties
from pybroker_spark.source.errors import OptionError

NAMES = st.text(min_size=1, max_size=8)
MARKS = st.builds(TopicMark, NAMES, st.lists(st.integers(0, 2**62), max_size=4).map(tuple))
BATCHES = st.integers(0, 3)
ENTRIES: st.SearchStrategy[Entry] = st.one_of(
    st.builds(Done, BATCHES, st.dictionaries(NAMES, NAMES, max_size=3)),
    st.builds(
        Begun,
        BATCHES,
        st.integers(0, 2),
        st.integers(0, 2**62),
        st.integers(0, 9),
        st.dictionaries(NAMES, MARKS, max_size=3),
    ),
)


@settings(deadline=None)
@given(ENTRIES)
def test_an_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert parse_entry(write_entry(entry)) == entry


@pytest.mark.parametrize("data", [None, b"", b"[]", b'{"begun":1}', b'{"done":"x","topics":{}}', b"\xff"])
def test_what_is_no_entry_is_refused(data: bytes | None) -> None:
    with pytest.raises(LedgerError, match="is not an entry of a sink's ledger"):
        parse_entry(data)


@settings(deadline=None)
@given(st.lists(ENTRIES, max_size=12), BATCHES, st.integers(0, 2))
def test_a_place_is_what_the_entries_before_say(entries: list[Entry], batch: int, task: int) -> None:
    place = place_of(entries, batch, task)
    done = [entry.batch for entry in entries if isinstance(entry, Done)]
    mine = [e for e in entries if isinstance(e, Begun) and (e.batch, e.task) == (batch, task)]
    assert place.done == (max(done, default=-1) >= batch)
    assert list(place.earlier) == mine
    assert place.identity == ((mine[0].producer_id, mine[0].epoch) if mine else None)
    for topic, mark in place.marks().items():
        assert mark == next(entry.topics[topic] for entry in mine if topic in entry.topics)
    assert begun_tasks(entries, batch) == {e.task for e in entries if isinstance(e, Begun) and e.batch == batch}


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.binary(max_size=2)),
        st.one_of(st.none(), st.binary(max_size=2)),
        st.lists(st.tuples(st.sampled_from("ab"), st.one_of(st.none(), st.just(b""))), max_size=2),
    ),
    max_size=12,
)


def batch_of(rows: list[tuple]) -> pa.RecordBatch:
    keys, values, headers = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.RecordBatch.from_pydict({
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "headers": pa.array([[{"key": k, "value": v} for k, v in head] for head in headers], HEADERS),
    })  # fmt: skip


@settings(deadline=None)
@given(ROWS, ROWS)
def test_fingerprints_are_equal_for_equal_rows_and_for_no_others(one: list[tuple], other: list[tuple]) -> None:
    rows, marks = one + other, fingerprints(batch_of(one), "t") + fingerprints(batch_of(other), "t")
    for index, row in enumerate(rows):
        for place, again in enumerate(rows):
            assert (marks[index] == marks[place]) == (row == again)
    assert set(fingerprints(batch_of(one), "u")).isdisjoint(marks)
    assert (Sum(fingerprints(batch_of(one))) == Sum(fingerprints(batch_of(other)))) == (
        Counter(map(repr, one)) == Counter(map(repr, other))
    )


def test_text_and_its_bytes_are_the_same_row() -> None:
    text = pa.RecordBatch.from_pydict({"value": ["grün"]})
    data = pa.RecordBatch.from_pydict({"value": ["grün".encode()], "topic": ["t"]})
    assert fingerprints(text, "t") == fingerprints(data)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=1)), st.lists(st.binary(max_size=1)))
def test_a_bag_gives_each_row_as_often_as_it_was_put_in(put: list[bytes], taken: list[bytes]) -> None:
    bag, left = Bag(), Counter(put)
    bag.add(put)
    for mark in taken:
        assert bag.take(mark) == (left[mark] > 0)
        left[mark] -= left[mark] > 0
    assert bag.rows == left.total()
    assert all((mark in bag) == (left[mark] > 0) for mark in put)


def routed(columns: dict[str, pa.Array], topic: str | None, turn: int) -> list[int | None]:
    batch = route(pa.RecordBatch.from_pydict(columns), topic, turn, {"t": 3, "u": 2}.__getitem__)
    return list(batch.column("partition").to_pylist()) if "partition" in batch.schema.names else []


def test_rows_without_key_and_partition_go_where_their_turn_says() -> None:
    values = pa.array([b"1", b"2", b"3"])
    assert routed({"value": values}, "t", 4) == [1, 1, 1]
    assert routed({"value": values, "key": pa.array([b"k", None, b"k"])}, "t", 5) == [None, 2, None]
    given_partition = pa.array([None, 0, None], pa.int32())
    assert routed({"value": values, "partition": given_partition}, "t", 2) == [2, 0, 2]
    assert routed({"value": values, "topic": pa.array(["t", "u", "t"])}, None, 5) == [2, 1, 2]
    assert routed({"value": values, "topic": pa.array(["t", None, "u"])}, None, 5) == [2, None, 1]
    assert routed({"value": values, "key": pa.array([b"k"] * 3)}, "t", 5) == []


def test_the_topics_of_a_batch_are_those_of_its_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["a", "b"], "topic": ["u", None]})
    assert topics_of(batch, "t") == ["t", "u"]
    assert topics_of(batch, None) == ["u"]
    assert topics_of(batch.select(["value"]), "t") == ["t"]


def test_settings_that_would_break_the_promise_are_refused_by_name() -> None:
    assert forced_properties({"acks": "-1", "linger.ms": "7"})["linger.ms"] == "7"
    for key, value in {"acks": "1", "enable.idempotence": "false", "transactional.id": "x"}.items():
        with pytest.raises(OptionError, match=f"kafka.{key}={value}: "):
            forced_properties({key: value})
