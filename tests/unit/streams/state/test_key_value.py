"""Key-value stores: order, bytes of the changelog, and restoring."""

from __future__ import annotations

import pytest

from pybroker.streams import serdes
from pybroker.streams.errors import InvalidStateStoreError, ProcessorStateError, TopologyError
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state import builders
from pybroker.streams.state.key_value import KeyValueStore, TimestampedKeyValueStore
from tests.support.store_context import RecordingContext, replay


def plain(context: RecordingContext, caching: bool = False) -> KeyValueStore[str, str]:
    store = builders.key_value_store("s").with_caching(caching).build()
    assert isinstance(store, KeyValueStore)
    store.init(context)
    return store


@pytest.mark.parametrize("caching", [False, True])
def test_ranges_follow_the_order_of_utf8_bytes(caching: bool) -> None:
    store = plain(RecordingContext(10_000), caching)
    store.put_all([("b", "2"), ("a", "1"), ("é", "4"), ("c", "3")])
    assert [key for key, _ in store.all()] == ["a", "b", "c", "é"]
    assert [key for key, _ in store.reverse_all()] == ["é", "c", "b", "a"]
    assert list(store.range("b", "c")) == [("b", "2"), ("c", "3")]
    assert list(store.reverse_range(None, "b")) == [("b", "2"), ("a", "1")]
    assert list(store.range("c", "b")) == []


@pytest.mark.parametrize("caching", [False, True])
def test_prefix_scan_returns_keys_with_the_prefix_only(caching: bool) -> None:
    store = plain(RecordingContext(10_000), caching)
    store.put_all([("a", "1"), ("ab", "2"), ("ac", "3"), ("b", "4")])
    assert list(store.prefix_scan("a", serdes.STRING)) == [("a", "1"), ("ab", "2"), ("ac", "3")]


def test_put_delete_and_put_if_absent_return_previous_values() -> None:
    store = plain(RecordingContext())
    assert store.put_if_absent("k", "1") is None
    assert store.put_if_absent("k", "2") == "1"
    assert store.get("k") == "1"
    assert store.delete("k") == "1"
    assert store.delete("k") is None
    assert store.approximate_num_entries == 0


def test_iteration_survives_changes_and_skips_removed_keys() -> None:
    store = plain(RecordingContext())
    store.put_all([(key, key) for key in "abcd"])
    seen = []
    for key, _ in store.all():
        seen.append(key)
        store.delete("b")
        store.put("e", "e")
    assert seen == ["a", "c", "d"]


def test_many_new_keys_are_sorted_before_the_next_range() -> None:
    store = plain(RecordingContext())
    for number in range(1000):
        store.put(f"{number * 7 % 1000:03}", "v")
    for number in range(0, 1000, 2):
        store.delete(f"{number:03}")
    assert [key for key, _ in store.all()] == [f"{number:03}" for number in range(1, 1000, 2)]


def test_changelog_of_a_plain_store_has_the_timestamp_of_the_record() -> None:
    context = RecordingContext()
    store = plain(context)
    context.at(7, (("h", b"x"),))
    store.put("k", "v")
    context.at(8)
    store.delete("k")
    assert context.logged == [(b"k", b"v", 7, ()), (b"k", None, 8, ())]


def test_changelog_of_a_timestamped_store_has_the_plain_value_and_the_timestamp_of_the_value() -> None:
    context = RecordingContext()
    builder = builders.timestamped_key_value_store("s", serdes.STRING, serdes.INT32)
    store = builder.build()
    assert isinstance(store, TimestampedKeyValueStore)
    store.init(context)
    context.at(50)
    store.put("k", ValueAndTimestamp(1, 9))
    store.put("absent", None)
    assert context.logged == [(b"k", b"\0\0\0\1", 9, ()), (b"absent", None, 50, ())]
    restored = builder.build()
    assert isinstance(restored, TimestampedKeyValueStore)
    restored.init(RecordingContext())
    replay(context, restored)
    assert restored.get("k") == ValueAndTimestamp(1, 9)
    assert list(restored.all()) == [("k", ValueAndTimestamp(1, 9))]


def test_timestamped_none_deletes_the_key() -> None:
    store = builders.timestamped_key_value_store("s").build()
    assert isinstance(store, TimestampedKeyValueStore)
    store.init(RecordingContext())
    store.put("k", ValueAndTimestamp("v", 1))
    store.put("k", ValueAndTimestamp(None, 2))
    assert store.get("k") is None


def test_disabled_logging_writes_no_changelog() -> None:
    context = RecordingContext()
    builder = builders.key_value_store("s").with_logging(True, {"retention.ms": "1"})
    assert builder.log_config == {"retention.ms": "1"}
    builder.disable_logging()
    assert builder.log_config == {}
    store = builder.build()
    assert isinstance(store, KeyValueStore)
    store.init(context)
    store.put("k", "v")
    assert context.logged == []


def test_missing_serde_and_closed_store_are_errors() -> None:
    context = RecordingContext()
    context.default_value_serde = None
    with pytest.raises(ProcessorStateError, match="store 's' has no value serde"):
        plain(context)
    store = plain(RecordingContext())
    store.close()
    with pytest.raises(InvalidStateStoreError, match="store 's' is closed"):
        store.get("k")
    with pytest.raises(TopologyError, match="it is versioned"):
        builders.versioned_key_value_store("v", 10).with_caching(True)
