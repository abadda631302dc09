"""Rows of a database under changes that are not committed; random operations are in `tests/property/streams`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.streams.state.rocks import RocksDatabase, StoreNumbers
from pybroker.streams.state.rocks_map import RocksMap


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RocksDatabase]:
    opened = RocksDatabase(tmp_path / "db", "s", "key-value", StoreNumbers())
    yield opened
    opened.close()


def test_range_merges_changes_and_committed_rows(database: RocksDatabase) -> None:
    rows = RocksMap(database, b"\x01")
    for key in (b"a", b"b", b"c", b"d"):
        rows.put(key, b"old")
    database.commit(1)
    rows.put(b"b", b"new")
    rows.put(b"bb", b"new")
    rows.remove(b"c")
    expected = [(b"a", b"old"), (b"b", b"new"), (b"bb", b"new"), (b"d", b"old")]
    assert list(rows.range(None, None)) == expected
    assert list(rows.range(None, None, forward=False)) == expected[::-1]
    assert list(rows.range(b"b", b"d", include_upper=False)) == expected[1:3]


def test_maps_of_two_prefixes_have_different_keys(database: RocksDatabase) -> None:
    one, other = RocksMap(database, b"\x01\x00"), RocksMap(database, b"\x01\x01")
    one.put(b"k", b"1")
    other.put(b"k", b"2")
    database.commit(None)
    one.clear()
    assert (one.get(b"k"), other.get(b"k")) == (None, b"2")
    assert (list(one.range(None, None)), list(other.range(None, None))) == ([], [(b"k", b"2")])
    one.put(b"m", b"3")
    database.commit(None)
    assert list(one.range(None, None)) == [(b"m", b"3")]
    assert database.prefixes(b"\x01", 2) == [b"\x01\x00", b"\x01\x01"]


def test_iteration_continues_over_a_commit(database: RocksDatabase) -> None:
    rows = RocksMap(database, b"\x01")
    for key in (b"a", b"b", b"c"):
        rows.put(key, b"old")
    iterator = rows.range(None, None)
    assert next(iterator) == (b"a", b"old")
    rows.remove(b"b")
    rows.put(b"c", b"new")
    database.commit(1)
    assert list(iterator) == [(b"c", b"new")]


def test_size_is_an_estimate(database: RocksDatabase) -> None:
    rows = RocksMap(database, b"\x01")
    rows.put(b"a", b"")
    assert rows.approximate_size == 1
    database.commit(1)
    assert rows.approximate_size in range(3)
