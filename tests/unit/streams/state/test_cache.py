"""The record cache: sizes, order of flushes, evictions and skipped updates, as in Kafka."""

from __future__ import annotations

from typing import Any

from pybroker.streams import serdes
from pybroker.streams.records import Change, Record, RecordContext, ValueAndTimestamp
from pybroker.streams.state import builders
from pybroker.streams.state.cache import Cache, CacheEntry
from pybroker.streams.state.key_value import KeyValueStore, TimestampedKeyValueStore
from tests.support.store_context import RecordingContext

Flushed = list[Record[Any, Change[Any]]]


def cached(context: RecordingContext, name: str = "s", old: bool = False) -> tuple[KeyValueStore[str, str], Flushed]:
    store = builders.key_value_store(name).with_caching(True).build()
    assert isinstance(store, KeyValueStore)
    store.init(context)
    flushed: Flushed = []
    assert store.set_flush_listener(flushed.append, old)
    return store, flushed


def test_entry_size_counts_references_flag_value_and_context() -> None:
    # 24 for references, 1 for the flag, 8 + 8 + 4 for timestamp, offset and partition, then key, value, topic, header.
    context = RecordContext(1, 2, 3, "in", (("head", b"xy"), ("n", None)))
    assert CacheEntry(b"key", b"value", context, True).size == 24 + 1 + 20 + 3 + 5 + 2 + 4 + 2 + 1
    assert CacheEntry(b"k", None, RecordContext(-1, -1, -1, ""), False).size == 46


def test_flush_forwards_the_last_value_of_each_key_in_the_order_of_last_updates() -> None:
    context = RecordingContext(10_000)
    store, flushed = cached(context)
    for timestamp, (key, value) in enumerate([("a", "1"), ("b", "2"), ("c", "3"), ("a", "4")]):
        context.at(timestamp, (("n", bytes([timestamp])),))
        store.put(key, value)
    assert flushed == []
    assert context.logged == []
    store.flush()
    assert [(record.key, record.value, record.timestamp) for record in flushed] == [
        ("b", Change("2", None), 1),
        ("c", Change("3", None), 2),
        ("a", Change("4", None), 3),
    ]
    assert [record.headers for record in flushed] == [(("n", b"\1"),), (("n", b"\2"),), (("n", b"\3"),)]
    assert context.logged == [(b"b", b"2", 1, ()), (b"c", b"3", 2, ()), (b"a", b"4", 3, ())]
    store.flush()
    assert len(flushed) == 3


def test_old_values_come_from_the_store_below() -> None:
    context = RecordingContext(10_000)
    store, flushed = cached(context, old=True)
    store.put("k", "1")
    store.flush()
    store.put("k", "2")
    store.put("k", "3")
    store.flush()
    store.put("k", None)
    store.flush()
    assert [record.value for record in flushed] == [Change("1", None), Change("3", "1"), Change(None, "3")]


def test_a_key_added_and_deleted_between_flushes_is_skipped() -> None:
    context = RecordingContext(10_000)
    store, flushed = cached(context)
    store.put("k", "1")
    store.put("k", None)
    assert store.get("k") is None
    store.flush()
    assert (flushed, context.logged) == ([], [])


def test_a_cache_without_listener_logs_deletes_of_unknown_keys() -> None:
    context = RecordingContext(10_000)
    store = builders.key_value_store("s").with_caching(True).build()
    assert isinstance(store, KeyValueStore)
    store.init(context)
    context.at(3)
    store.put("k", None)
    store.flush()
    assert context.logged == [(b"k", None, 3, ())]


def test_the_context_of_the_entry_is_set_during_its_flush_and_restored_afterwards() -> None:
    context = RecordingContext(10_000)
    store, _ = cached(context)
    seen: list[RecordContext | None] = []
    store.set_flush_listener(lambda record: seen.append(context.record_context), False)
    context.at(1)
    store.put("k", "v")
    context.at(2)
    store.flush()
    assert seen == [RecordContext(1, 0, 0, "in")]
    assert context.record_context == RecordContext(2, 0, 0, "in")


def test_an_evicted_dirty_entry_is_flushed_first_and_takes_all_dirty_entries_with_it() -> None:
    # One entry has 24 + 1 + 20 + 2 + 1 + 1 = 49 bytes: the third does not fit into 100.
    context = RecordingContext(100)
    store, flushed = cached(context)
    store.put("a", "1")
    store.put("b", "2")
    store.get("a")
    assert flushed == []
    store.put("c", "3")
    assert [record.key for record in flushed] == ["b", "a", "c"]
    assert context.cache is not None
    assert context.cache.size == 98
    # "a" is clean now, so its eviction forwards nothing.
    store.put("d", "4")
    assert len(flushed) == 3


def test_stores_of_one_task_share_the_limit_and_evict_their_own_entries() -> None:
    context = RecordingContext(100)
    first, flushed_first = cached(context, "first")
    second, flushed_second = cached(context, "second")
    first.put("a", "1")
    first.put("b", "2")
    second.put("c", "3")
    assert flushed_first == []
    assert [record.key for record in flushed_second] == ["c"]
    first.close()
    assert context.cache is not None
    assert context.cache.size == 0


def test_a_limit_of_zero_forwards_each_update_at_once_and_skips_unknown_deletes() -> None:
    context = RecordingContext(0)
    store, flushed = cached(context)
    store.put("k", None)
    store.put("k", "1")
    store.put("k", "2")
    assert [record.value.new_value for record in flushed] == ["1", "2"]


def test_a_task_without_cache_has_no_listener() -> None:
    context = RecordingContext()
    store = builders.key_value_store("s").with_caching(True).build()
    assert isinstance(store, KeyValueStore)
    store.init(context)
    assert not store.set_flush_listener(lambda record: None, False)
    store.put("k", "v")
    assert store.get("k") == "v"
    assert len(context.logged) == 1


def test_cached_deletes_hide_stored_keys_in_ranges() -> None:
    context = RecordingContext(10_000)
    store, _ = cached(context)
    store.put_all([("a", "1"), ("b", "2"), ("d", "4")])
    store.flush()
    store.put("b", None)
    store.put("c", "3")
    store.put("a", "0")
    assert list(store.all()) == [("a", "0"), ("c", "3"), ("d", "4")]
    assert list(store.reverse_all()) == [("d", "4"), ("c", "3"), ("a", "0")]
    assert list(store.range("b", "c")) == [("c", "3")]


def test_timestamped_stores_forward_values_with_timestamps() -> None:
    context = RecordingContext(10_000)
    store = builders.timestamped_key_value_store("s", serdes.STRING, serdes.STRING).with_caching(True).build()
    assert isinstance(store, TimestampedKeyValueStore)
    store.init(context)
    flushed: Flushed = []
    store.set_flush_listener(flushed.append, True)
    context.at(20)
    store.put("k", ValueAndTimestamp("v", 5))
    store.flush()
    assert flushed == [Record("k", Change(ValueAndTimestamp("v", 5), None), 20)]
    assert context.logged == [(b"k", b"v", 5, ())]


def test_a_write_of_the_listener_to_the_same_store_waits_for_the_next_flush() -> None:
    cache = Cache(10_000)
    batches: list[list[bytes]] = []

    def flushed(batch: list[tuple[bytes, CacheEntry]]) -> None:
        batches.append([key for key, _ in batch])
        if len(batches) == 1:
            entries.put(b"new", b"1", RecordContext(0, 0, 0, "t"), True)

    entries = cache.open(flushed)
    entries.put(b"k", b"1", RecordContext(0, 0, 0, "t"), True)
    entries.flush()
    entries.flush()
    assert batches == [[b"k"], [b"new"]]
    assert cache.size == entries.size
