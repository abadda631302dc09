from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.streams.errors import ProcessorStateError
from pybroker.streams.serdes import STRING
from pybroker.streams.state import builders
from pybroker.streams.state.sorted_map import SortedMap
from pybroker.streams.state.store_maps import StoreMaps
from tests.support.persistent_stores import opened


def test_maps_without_a_directory_are_in_memory() -> None:
    maps = StoreMaps("s", "key-value", True)
    maps.open(None)
    maps.map(b"\x01").put(b"k", b"v")
    maps.commit(5)
    assert (maps.persistent, maps.committed_offset, maps.uncommitted_bytes) == (False, None, 0)
    assert maps.map(b"\x01").get(b"k") is None
    assert maps.prefixes(b"\x01", 1) == []


def test_database_is_in_the_directory_of_the_task(tmp_path: Path) -> None:
    maps = StoreMaps("s", "key-value", True)
    maps.open(tmp_path)
    maps.map(b"\x01").put(b"k", b"v")
    assert maps.uncommitted_bytes > 0
    maps.commit(5)
    assert maps.map(b"\x01").get(b"k") == b"v"
    maps.close()
    assert (tmp_path / "rocksdb" / "s" / "CURRENT").exists()
    assert not maps.persistent


def test_store_in_memory_has_no_database(tmp_path: Path) -> None:
    for builder in (
        builders.in_memory_key_value_store("s"),
        builders.in_memory_window_store("w", 100, 10),
        builders.in_memory_session_store("t", 100),
        builders.suppress_buffer("b"),
        builders.join_buffer("j", 100),
    ):
        assert not builder.persistent
        store, _ = opened(builder, tmp_path)
        store.commit(3)
        assert (store.persistent, store.committed_offset) == (False, None)
        store.close()
    assert list(tmp_path.iterdir()) == []


def test_choice_of_a_builder_wins_over_the_default() -> None:
    assert not builders.key_value_store("s").with_default_persistence(False).persistent
    assert builders.key_value_store("s").persistent
    assert builders.persistent_key_value_store("s").with_default_persistence(False).persistent
    assert not builders.in_memory_key_value_store("s").with_default_persistence(True).persistent


def test_store_of_another_type_under_the_same_name_is_rejected(tmp_path: Path) -> None:
    store, _ = opened(builders.key_value_store("s", STRING, STRING), tmp_path)
    store.close()
    for other in (
        builders.timestamped_key_value_store("s", STRING, STRING),
        builders.window_store("s", 100, 10, STRING, STRING),
    ):
        with pytest.raises(ProcessorStateError, match="store 's' has changed"):
            opened(other, tmp_path)
    store, _ = opened(builders.window_store("w", 200_000, 10), tmp_path)
    store.close()
    with pytest.raises(ProcessorStateError, match=r"segments of 100000 ms.* needs '1 window, segments of 200000 ms'"):
        opened(builders.window_store("w", 400_000, 10), tmp_path)


def test_sequence_numbers_continue_after_a_restart(tmp_path: Path) -> None:
    builder = builders.window_store("w", 100, 10, retain_duplicates=True)
    store, context = opened(builder, tmp_path)
    store.put("k", "1", 5)
    store.put("k", None, 5)
    store.commit(1)
    store.close()
    store, context = opened(builder, tmp_path)
    store.put("k", "2", 5)
    assert [value for _, value in store.fetch_range("k", 0, 10)] == ["1", "2"]
    assert context.logged[0][0][-4:] == b"\0\0\0\3"
    store.close()


def test_expired_rows_stay_expired_after_a_restart(tmp_path: Path) -> None:
    builder = builders.window_store("w", 60_000, 10)
    store, _ = opened(builder, tmp_path)
    store.put("k", "old", 5)
    store.put("k", "new", 500_000)
    store.put("k", None, 500_000)
    store.commit(1)
    store.close()
    store, _ = opened(builder, tmp_path)
    store.put("k", "late", 5)
    assert list(store.all()) == []
    store.close()


class Attached:
    """A database that counts commits."""

    committed_offset: int | None = 7
    uncommitted_bytes = 3

    def __init__(self) -> None:
        self.maps: dict[bytes, SortedMap[bytes]] = {}
        self.commits: list[int | None] = []
        self.closed = False

    def map(self, prefix: bytes) -> SortedMap[bytes]:
        return self.maps.setdefault(prefix, SortedMap())

    def prefixes(self, start: bytes, length: int) -> list[bytes]:
        return [prefix for prefix in self.maps if prefix.startswith(start) and len(prefix) == length]

    def commit(self, changelog_offset: int | None) -> None:
        self.commits.append(changelog_offset)

    def property_values(self) -> dict[str, float]:
        return {"num-entries-active-mem-table": 2.0}

    def close(self) -> None:
        self.closed = True


def test_attached_database_has_the_maps_of_the_store() -> None:
    maps, database = StoreMaps("counts", "key-value", persistent=False), Attached()
    maps.attach(database, database.map)
    maps.open(None)
    maps.map(b"\x01").put(b"a", b"1")
    assert database.maps[b"\x01"].get(b"a") == b"1"
    assert maps.prefixes(b"", 1) == [b"\x01"]
    assert (maps.persistent, maps.committed_offset, maps.uncommitted_bytes) == (True, 7, 3)
    assert maps.property_values() == {"num-entries-active-mem-table": 2.0}
    maps.commit(8)
    maps.close()
    assert (database.commits, database.closed, maps.persistent) == ([8], True, False)
