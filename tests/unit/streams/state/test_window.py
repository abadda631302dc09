"""Window stores: bytes of the changelog, order, retention and duplicates, as in Kafka's RocksDB stores."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.streams.errors import TopologyError
from pybroker.streams.records import Change, Record, ValueAndTimestamp
from pybroker.streams.state import builders
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.state.window import TimestampedWindowStore, WindowStore
from pybroker.streams.windows import TimeWindow, Windowed
from tests.support.store_context import RecordingContext, replay

MINUTE = 60_000


def opened(builder: StoreBuilder, context: RecordingContext) -> WindowStore[str, str]:
    store = builder.build()
    assert isinstance(store, WindowStore)
    store.init(context)
    return store


def window(key: str, start: int, size: int = 10) -> Windowed[str]:
    return Windowed(key, TimeWindow(start, start + size))


def test_changelog_key_is_key_start_and_sequence_number() -> None:
    context = RecordingContext()
    store = opened(builders.window_store("w", 100, 10), context)
    context.at(7)
    store.put("ab", "v", 258)
    store.put("ab", None, 258)
    assert context.logged == [
        (b"ab\0\0\0\0\0\0\1\2\0\0\0\0", b"v", 7, ()),
        (b"ab\0\0\0\0\0\0\1\2\0\0\0\0", None, 7, ()),
    ]


def test_duplicates_get_sequence_numbers_and_ignore_none() -> None:
    context = RecordingContext()
    builder = builders.window_store("w", 100, 10, retain_duplicates=True).with_caching(True)
    assert not builder.caching
    store = opened(builder, context)
    store.put("k", "1", 5)
    store.put("k", "2", 5)
    store.put("k", None, 5)
    assert [logged[0][-4:] for logged in context.logged] == [b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0\3"]
    assert list(store.fetch_range("k", 0, 10)) == [(5, "1"), (5, "2")]
    restored = opened(builder, RecordingContext())
    replay(context, restored)
    restored.put("k", "4", 5)
    assert [value for _, value in restored.fetch_range("k", 5, 5)] == ["1", "2", "4"]


def test_timestamped_changelog_has_the_plain_value_and_its_timestamp() -> None:
    context = RecordingContext()
    builder = builders.timestamped_window_store("w", 100, 10)
    store = builder.build()
    assert isinstance(store, TimestampedWindowStore)
    store.init(context)
    context.at(99)
    store.put("k", ValueAndTimestamp("v", 3), 0)
    store.put("k", None, 1)
    assert context.logged == [(b"k" + bytes(12), b"v", 3, ()), (b"k" + bytes(7) + b"\1" + bytes(4), None, 99, ())]
    restored = builder.build()
    assert isinstance(restored, TimestampedWindowStore)
    restored.init(RecordingContext())
    replay(context, restored)
    assert restored.fetch("k", 0) == ValueAndTimestamp("v", 3)


@pytest.mark.parametrize("caching", [False, True])
def test_fetches_include_both_bounds_and_only_their_key(caching: bool) -> None:
    store = opened(builders.window_store("w", 1000, 10).with_caching(caching), RecordingContext(100_000))
    for start in (0, 10, 20, 30):
        store.put("k", f"k{start}", start)
        store.put("k\0", "other", start)
    assert list(store.fetch_range("k", 10, 20)) == [(10, "k10"), (20, "k20")]
    assert list(store.backward_fetch_range("k", 0, 25)) == [(20, "k20"), (10, "k10"), (0, "k0")]
    assert store.fetch("k", 30) == "k30"
    assert store.fetch("k", 31) is None
    assert list(store.fetch_range("k", 40, 20)) == []


@pytest.mark.parametrize("caching", [False, True])
def test_all_windows_follow_segments_then_keys_then_starts(caching: bool) -> None:
    store = opened(builders.window_store("w", 4 * MINUTE, 10).with_caching(caching), RecordingContext(100_000))
    # The segment interval is half of the retention: two minutes.
    for key, start in [("b", 0), ("a", 50), ("a", 3 * MINUTE), ("b", 5), ("a", 2 * MINUTE + 1)]:
        store.put(key, "v", start)
    expected = [
        window("a", 50), window("b", 0), window("b", 5), window("a", 2 * MINUTE + 1), window("a", 3 * MINUTE),
    ]  # fmt: skip
    assert [key for key, _ in store.all()] == expected
    assert [key for key, _ in store.backward_all()] == expected[::-1]
    assert [key for key, _ in store.fetch_all(5, 2 * MINUTE + 1)] == [expected[0], expected[2], expected[3]]
    assert [key for key, _ in store.fetch_keys("b", None, 0, MINUTE)] == [expected[1], expected[2]]
    assert [key for key, _ in store.backward_fetch_keys(None, "a", 0, MINUTE)] == [expected[0]]


def test_stores_in_time_order_iterate_by_start_first() -> None:
    builder = builders.timestamped_window_store("w", 1000, 10).with_time_order()
    context = RecordingContext(100_000)
    store = builder.build()
    assert isinstance(store, TimestampedWindowStore)
    store.init(context)
    for key, start in [("b", 0), ("a", 50), ("c", 20), ("a", 0)]:
        store.put(key, ValueAndTimestamp(key, 1), start)
    assert [(key.key, key.window.start) for key, _ in store.fetch_all(0, 50)] == [
        ("a", 0), ("b", 0), ("c", 20), ("a", 50),
    ]  # fmt: skip
    assert [start for start, _ in store.fetch_range("a", 0, 100)] == [0, 50]
    assert context.logged[0][0] == b"b" + bytes(12)


def test_the_cache_of_a_store_in_time_order_iterates_by_start_first_and_flushes_in_the_order_of_updates() -> None:
    context = RecordingContext(100_000)
    store = builders.timestamped_window_store("w", 1000, 10).with_time_order().with_caching(True).build()
    assert isinstance(store, TimestampedWindowStore)
    store.init(context)
    for key, start in [("b", 0), ("a", 50)]:
        store.put(key, ValueAndTimestamp(key, 1), start)
    store.flush()
    for key, start in [("c", 20), ("a", 0)]:
        store.put(key, ValueAndTimestamp(key, 1), start)
    assert [(key.key, key.window.start) for key, _ in store.fetch_all(0, 50)] == [
        ("a", 0), ("b", 0), ("c", 20), ("a", 50),
    ]  # fmt: skip
    assert [key for key, *_ in context.logged] == [b"b" + bytes(12), b"a" + bytes(7) + b"2" + bytes(4)]


def test_a_window_is_readable_while_it_is_younger_than_the_retention() -> None:
    store = opened(builders.window_store("w", 100, 10), RecordingContext())
    store.put("k", "0", 0)
    store.put("k", "1", 1)
    store.put("k", "100", 100)
    assert store.fetch("k", 0) is None
    assert [start for start, _ in store.fetch_range("k", 0, 200)] == [1, 100]
    assert [key.window.start for key, _ in store.all()] == [1, 100]
    # Its segment is live, so a late write succeeds. It is not readable.
    store.put("k", "late", 0)
    assert store.fetch("k", 0) is None


def test_a_store_in_time_order_reads_one_instant_more() -> None:
    store = opened(builders.window_store("w", 100, 10).with_time_order(), RecordingContext())
    store.put("k", "0", 0)
    store.put("k", "100", 100)
    assert store.fetch("k", 0) == "0"
    store.put("k", "101", 101)
    assert store.fetch("k", 0) is None


def test_a_write_to_an_expired_segment_is_dropped_and_logged() -> None:
    context = RecordingContext()
    store = opened(builders.window_store("w", MINUTE, 10), context)
    store.put("k", "new", 3 * MINUTE)
    store.put("k", "old", 0)
    assert [key.window.start for key, _ in store.all()] == [3 * MINUTE]
    assert len(context.logged) == 2


def test_cached_windows_are_flushed_in_the_order_of_updates_with_old_values() -> None:
    context = RecordingContext(100_000)
    store = opened(builders.window_store("w", 1000, 10).with_caching(True), context)
    flushed: list[Record[Any, Change[Any]]] = []
    assert store.set_flush_listener(flushed.append, True)
    store.put("b", "1", 20)
    store.put("a", "1", 10)
    store.flush()
    context.at(4)
    store.put("b", "2", 20)
    store.put("c", None, 0)
    assert list(store.fetch_range("b", 0, 100)) == [(20, "2")]
    store.flush()
    assert [(record.key, record.value) for record in flushed] == [
        (window("b", 20), Change("1", None)),
        (window("a", 10), Change("1", None)),
        (window("b", 20), Change("2", "1")),
    ]
    assert context.logged[-1] == (b"b" + bytes(7) + b"\x14" + bytes(4), b"2", 4, ())


def test_a_retention_shorter_than_the_window_is_rejected() -> None:
    with pytest.raises(TopologyError, match="expected at least the window size, 11"):
        builders.window_store("w", 10, 11)
