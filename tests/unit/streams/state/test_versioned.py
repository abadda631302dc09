"""The versioned store, and the table's view of versioned and timestamped stores (KIP-889)."""

from __future__ import annotations

import random

import pytest

from pybroker.streams import serdes
from pybroker.streams.errors import InvalidStateStoreError
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state import builders
from pybroker.streams.state.versioned import (
    PUT_NOT_PUT,
    PUT_VALID_TO_UNDEFINED,
    VersionedKeyValueStore,
    VersionedRecord,
)
from pybroker.streams.state.wrapper import PUT_IS_LATEST, TableStore
from tests.support.store_context import RecordingContext, replay


def opened(
    context: RecordingContext, retention_ms: int, interval_ms: int | None = None
) -> VersionedKeyValueStore[str, str]:
    builder = builders.versioned_key_value_store("v", retention_ms, serdes.STRING, serdes.STRING, interval_ms)
    store = builder.build()
    assert isinstance(store, VersionedKeyValueStore)
    store.init(context)
    return store


def test_put_returns_when_the_version_stops_being_valid() -> None:
    store = opened(RecordingContext(), 100)
    assert store.put("k", "20", 20) == PUT_VALID_TO_UNDEFINED == -1
    assert store.put("k", "10", 10) == 20
    assert store.put("k", "15", 15) == 20
    assert store.put("k", "30", 30) == -1
    assert store.put("k", None, 25) == 30
    assert store.put("k", "25", 25) == 30
    assert store.put("k", "200", 200) == -1
    assert store.put("k", "99", 99) == PUT_NOT_PUT == -(2**63)


def test_get_as_of_returns_the_valid_version_inside_the_retention() -> None:
    store = opened(RecordingContext(), 100)
    for timestamp in (10, 20, 30):
        store.put("k", str(timestamp), timestamp)
    store.put("k", None, 25)
    assert store.get("k") == VersionedRecord("30", 30)
    assert store.get_as_of("k", 9) is None
    assert store.get_as_of("k", 19) == VersionedRecord("10", 10)
    assert store.get_as_of("k", 24) == VersionedRecord("20", 20)
    assert store.get_as_of("k", 29) is None
    assert store.get_as_of("k", 1000) == VersionedRecord("30", 30)
    store.put("other", "x", 131)
    assert store.get_as_of("k", 30) == VersionedRecord("30", 30)
    assert store.get_as_of("k", 20) is None


def test_a_tombstone_as_the_latest_version_keeps_older_versions() -> None:
    store = opened(RecordingContext(), 100)
    store.put("k", "1", 1)
    assert store.delete("k", 5) == VersionedRecord("1", 1)
    assert store.get("k") is None
    assert store.get_as_of("k", 4) == VersionedRecord("1", 1)
    assert store.put("k", "3", 3) == 5
    assert store.put("k", "0", 0) == 1
    assert store.get_as_of("k", 0) == VersionedRecord("0", 0)


def test_every_put_is_logged_with_its_own_timestamp() -> None:
    context = RecordingContext()
    store = opened(context, 10)
    context.at(500)
    store.put("k", "a", 100)
    store.put("k", "late", 1)
    store.delete("k", 101)
    assert context.logged == [(b"k", b"a", 100, ()), (b"k", b"late", 1, ()), (b"k", None, 101, ())]
    restored = opened(RecordingContext(), 10)
    replay(context, restored)
    assert restored.get_as_of("k", 100) == VersionedRecord("a", 100)
    assert restored.get("k") is None


@pytest.mark.parametrize("seed", range(5))
def test_random_puts_agree_with_a_list_of_all_versions(seed: int) -> None:
    chance = random.Random(seed)
    retention = 50
    store = opened(RecordingContext(), retention, 7)
    versions: dict[int, str | None] = {}
    stream_time = -1
    for number in range(300):
        timestamp = max(0, stream_time + chance.randrange(-60, 12))
        value = None if chance.random() < 0.3 else str(number)
        code = store.put("k", value, timestamp)
        if timestamp < stream_time - retention:
            assert code == PUT_NOT_PUT
        else:
            stream_time = max(stream_time, timestamp)
            versions[timestamp] = value
            later = [other for other in versions if other > timestamp]
            if later:
                assert code == min(later)
            else:
                assert code == PUT_VALID_TO_UNDEFINED
        for as_of in range(max(0, stream_time - retention), stream_time + 2):
            earlier = [other for other in versions if other <= as_of]
            expected = versions[max(earlier)] if earlier else None
            found = store.get_as_of("k", as_of)
            assert (found.value if found else None) == expected, (number, as_of)


def test_table_store_has_one_interface_for_both_kinds() -> None:
    versioned = TableStore[str, str](opened(RecordingContext(), 100))
    assert versioned.is_versioned
    assert versioned.put("k", "2", 2) == PUT_IS_LATEST
    assert versioned.put("k", "1", 1) == 2
    assert versioned.get("k") == ValueAndTimestamp("2", 2)
    assert versioned.get_as_of("k", 1) == ValueAndTimestamp("1", 1)
    store = builders.timestamped_key_value_store("t").build()
    store.init(RecordingContext())
    timestamped = TableStore[str, str](store)
    assert timestamped.put("k", "v", 7) == PUT_IS_LATEST
    assert timestamped.get("k") == ValueAndTimestamp("v", 7)
    assert timestamped.put("k", None, 8) == PUT_IS_LATEST
    assert timestamped.get("k") is None
    with pytest.raises(NotImplementedError, match="not versioned"):
        timestamped.get_as_of("k", 1)
    with pytest.raises(InvalidStateStoreError, match="expected a timestamped or a versioned"):
        TableStore(builders.key_value_store("p").build())
