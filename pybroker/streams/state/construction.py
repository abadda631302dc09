"""Functions that build a store from its specification: data, changelog, cache, types, from inside out."""

from __future__ import annotations

from typing import Any, TypeVar

from pybroker.streams.state.join_buffer import JoinBuffer
from pybroker.streams.state.key_value import KeyValueStore, TimestampedKeyValueStore
from pybroker.streams.state.key_value_bytes import (
    CachedKeyValueBytes,
    KeyValueBytes,
    LoggedKeyValueBytes,
    StoredKeyValueBytes,
)
from pybroker.streams.state.outer_join import OuterJoinStore
from pybroker.streams.state.session import SessionStore
from pybroker.streams.state.session_bytes import (
    CachedSessionBytes,
    LoggedSessionBytes,
    SessionBytes,
    StoredSessionBytes,
)
from pybroker.streams.state.spec import StoreSpec
from pybroker.streams.state.store import StateStore
from pybroker.streams.state.store_maps import StoreMaps
from pybroker.streams.state.suppress_buffer import SuppressBuffer
from pybroker.streams.state.versioned import VersionedKeyValueStore
from pybroker.streams.state.versioned_bytes import LoggedVersionedBytes, StoredVersionedBytes, VersionedBytes
from pybroker.streams.state.window import TimestampedWindowStore, WindowStore
from pybroker.streams.state.window_bytes import (
    CachedWindowBytes,
    LoggedWindowBytes,
    StoredWindowBytes,
    TimeOrderedCachedWindowBytes,
    WindowBytes,
    WindowLayout,
)

S = TypeVar("S", bound=StateStore)


def _maps(spec: StoreSpec) -> StoreMaps:
    return StoreMaps(spec.name, spec.layout, spec.persistent is not False)


def _on(maps: StoreMaps, store: S) -> S:
    """Return a store with its data."""
    store.maps = maps
    return store


def _key_value_bytes(spec: StoreSpec, maps: StoreMaps, timestamped: bool) -> KeyValueBytes:
    store: KeyValueBytes = StoredKeyValueBytes(maps, timestamped)
    if spec.logging:
        store = LoggedKeyValueBytes(store, spec.name, timestamped, spec.logs_headers)
    return CachedKeyValueBytes(store) if spec.caching else store


def key_value(spec: StoreSpec) -> KeyValueStore[Any, Any]:
    """Return a key-value store."""
    maps = _maps(spec)
    inner = _key_value_bytes(spec, maps, False)
    return _on(maps, KeyValueStore(spec.name, inner, spec.key_serde, spec.value_serde))


def timestamped_key_value(spec: StoreSpec) -> TimestampedKeyValueStore[Any, Any]:
    """Return a timestamped key-value store."""
    maps = _maps(spec)
    inner = _key_value_bytes(spec, maps, True)
    return _on(maps, TimestampedKeyValueStore(spec.name, inner, spec.key_serde, spec.value_serde))


def versioned(spec: StoreSpec) -> VersionedKeyValueStore[Any, Any]:
    """Return a versioned key-value store."""
    maps = _maps(spec)
    store: VersionedBytes = StoredVersionedBytes(maps, spec.history_retention_ms or 0, spec.segment_interval_ms or 1)
    if spec.logging:
        store = LoggedVersionedBytes(store, spec.name)
    return _on(maps, VersionedKeyValueStore(spec.name, store, spec.key_serde, spec.value_serde))


def _window_bytes(spec: StoreSpec, maps: StoreMaps, timestamped: bool) -> WindowBytes:
    interval_ms = spec.segment_interval_ms or 1
    layout = WindowLayout(spec.retention_ms or 0, interval_ms, spec.retains_duplicates, spec.time_ordered, timestamped)
    store: WindowBytes = StoredWindowBytes(maps, layout)
    if spec.logging:
        store = LoggedWindowBytes(store, maps, layout, spec.logs_headers)
    if spec.caching and not spec.retains_duplicates:
        layer = TimeOrderedCachedWindowBytes if spec.time_ordered else CachedWindowBytes
        store = layer(store, interval_ms)
    return store


def window(spec: StoreSpec) -> WindowStore[Any, Any]:
    """Return a window store."""
    maps = _maps(spec)
    inner = _window_bytes(spec, maps, False)
    return _on(maps, WindowStore(spec.name, inner, spec.window_size_ms or 0, spec.key_serde, spec.value_serde))


def timestamped_window(spec: StoreSpec) -> TimestampedWindowStore[Any, Any]:
    """Return a timestamped window store."""
    maps = _maps(spec)
    inner = _window_bytes(spec, maps, True)
    size_ms = spec.window_size_ms or 0
    return _on(maps, TimestampedWindowStore(spec.name, inner, size_ms, spec.key_serde, spec.value_serde))


def session(spec: StoreSpec) -> SessionStore[Any, Any]:
    """Return a session store."""
    maps = _maps(spec)
    interval_ms = spec.segment_interval_ms or 1
    store: SessionBytes = StoredSessionBytes(maps, spec.retention_ms or 0, interval_ms, spec.time_ordered)
    if spec.logging:
        store = LoggedSessionBytes(store, spec.name)
    if spec.caching and not spec.time_ordered:
        store = CachedSessionBytes(store, interval_ms)
    return _on(maps, SessionStore(spec.name, store, spec.key_serde, spec.value_serde))


def suppress_buffer(spec: StoreSpec) -> SuppressBuffer[Any, Any]:
    """Return the buffer of `suppress`."""
    return SuppressBuffer(spec.name, spec.logging, spec.key_serde, spec.value_serde)


def join_buffer(spec: StoreSpec) -> JoinBuffer[Any, Any]:
    """Return the buffer of a stream-table join with grace."""
    return JoinBuffer(spec.name, spec.grace_ms or 0, spec.logging, spec.key_serde, spec.value_serde)


def outer_join(spec: StoreSpec) -> OuterJoinStore[Any, Any, Any]:
    """Return the store of a left or outer join of two streams."""
    maps = _maps(spec)
    store: KeyValueBytes = StoredKeyValueBytes(maps, False)
    if spec.logging:
        store = LoggedKeyValueBytes(store, spec.name, False, False)
    serdes = spec.value_serde, spec.other_value_serde
    return _on(maps, OuterJoinStore(spec.name, store, spec.key_serde, serdes))
