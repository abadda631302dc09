"""Builders of state stores: a topology contains builders, and each task builds its own stores from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pybroker.streams.errors import TopologyError
from pybroker.streams.serdes import AnySerde
from pybroker.streams.state import construction
from pybroker.streams.state.spec import BUFFER_KINDS, UNCACHED_KINDS, WINDOWED_KINDS, StoreKind, StoreSpec
from pybroker.streams.state.store import StateStore

LEAST_SEGMENT_INTERVAL_MS = 60_000
"""The shortest segment of a windowed store by default, in milliseconds."""


class StoreBuilder:
    """Builds one store for each task (`StoreBuilder`).

    A builder does not change, except that the optimiser of topologies can disable its changelog. The `with_*` methods
    return changed copies.
    """

    def __init__(self, spec: StoreSpec) -> None:
        self.spec = spec

    @property
    def name(self) -> str:
        """The name of the store."""
        return self.spec.name

    @property
    def kind(self) -> StoreKind:
        """The type of the store."""
        return self.spec.kind

    @property
    def key_serde(self) -> AnySerde:
        """The serde of keys; None for the default of the topology."""
        return self.spec.key_serde

    @property
    def value_serde(self) -> AnySerde:
        """The serde of values, without the timestamp; None for the default of the topology."""
        return self.spec.value_serde

    @property
    def logging(self) -> bool:
        """Whether the store has a changelog."""
        return self.spec.logging

    @property
    def persistent(self) -> bool:
        """Whether a task with a directory keeps the store in RocksDB. Buffers are always in memory."""
        return self.spec.persistent is not False and self.spec.kind not in BUFFER_KINDS

    @property
    def log_config(self) -> dict[str, str]:
        """The configuration of the changelog topic; empty if logging is disabled."""
        return dict(self.spec.log_config) if self.spec.logging else {}

    @property
    def caching(self) -> bool:
        """Whether the store has a cache. A store that retains duplicates has none."""
        return self.spec.caching and not self.spec.retains_duplicates

    @property
    def is_window(self) -> bool:
        """Whether the store keeps windows or sessions. Its changelog topic has retention by time too."""
        return self.spec.kind in WINDOWED_KINDS

    @property
    def is_versioned(self) -> bool:
        """Whether the store keeps several versions of a value."""
        return self.spec.kind is StoreKind.VERSIONED_KEY_VALUE

    @property
    def retention_ms(self) -> int | None:
        """The retention of windows or sessions, in milliseconds; None for other stores."""
        return self.spec.retention_ms

    @property
    def window_size_ms(self) -> int | None:
        """The size of the windows, in milliseconds; None for stores without windows."""
        return self.spec.window_size_ms

    @property
    def history_retention_ms(self) -> int | None:
        """The history retention of a versioned store, in milliseconds; None for other stores."""
        return self.spec.history_retention_ms

    @property
    def retains_duplicates(self) -> bool:
        """Whether a window of a key can have several values."""
        return self.spec.retains_duplicates

    def with_caching(self, caching: bool) -> StoreBuilder:
        """Return this builder with or without a cache. Buffers have no cache.

        Raises:
            TopologyError: the store is versioned.
        """
        if caching and self.is_versioned:
            raise TopologyError(f"store {self.name!r} cannot have a cache: it is versioned")
        return self._changed(caching=caching and self.spec.kind not in UNCACHED_KINDS)

    def with_persistence(self, persistent: bool) -> StoreBuilder:
        """Return this builder of a store in RocksDB, or in memory."""
        return self._changed(persistent=persistent)

    def with_default_persistence(self, persistent: bool) -> StoreBuilder:
        """Return this builder with the default of the application, if nothing else was chosen."""
        return self if self.spec.persistent is not None else self._changed(persistent=persistent)

    def with_logging(self, logging: bool, config: Mapping[str, str] | None = None) -> StoreBuilder:
        """Return this builder with a changelog and the configuration of its topic, or without a changelog."""
        return self._changed(logging=logging, log_config=dict(config or {}) if logging else {})

    def with_time_order(self) -> StoreBuilder:
        """Return this builder of windows or sessions, iterated by time first, as `EmitStrategy.ON_WINDOW_CLOSE` needs.

        Raises:
            TopologyError: the store has no windows.
        """
        if not self.is_window:
            raise TopologyError(f"store {self.name!r} cannot be ordered by time: it has no windows")
        return self._changed(time_ordered=True)

    def with_logged_headers(self) -> StoreBuilder:
        """Return this builder with the headers of the processed record in its changelog, as Kafka's joins do."""
        return self._changed(logs_headers=True)

    def disable_logging(self) -> None:
        """Remove the changelog from this builder. The source topic of a table replaces the changelog."""
        self.spec = msgspec.structs.replace(self.spec, logging=False, log_config={})

    def build(self) -> StateStore:
        """Return a new store. The task opens it with `init`."""
        return _MAKERS[self.spec.kind](self.spec)

    def _changed(self, **fields: Any) -> StoreBuilder:
        return StoreBuilder(msgspec.structs.replace(self.spec, **fields))

    def __repr__(self) -> str:
        """Return the name and the type of the store."""
        return f"StoreBuilder({self.name!r}, {self.kind.value})"


_MAKERS: dict[StoreKind, Callable[[StoreSpec], StateStore]] = {
    StoreKind.KEY_VALUE: construction.key_value,
    StoreKind.TIMESTAMPED_KEY_VALUE: construction.timestamped_key_value,
    StoreKind.VERSIONED_KEY_VALUE: construction.versioned,
    StoreKind.WINDOW: construction.window,
    StoreKind.TIMESTAMPED_WINDOW: construction.timestamped_window,
    StoreKind.SESSION: construction.session,
    StoreKind.SUPPRESS_BUFFER: construction.suppress_buffer,
    StoreKind.JOIN_BUFFER: construction.join_buffer,
    StoreKind.OUTER_JOIN: construction.outer_join,
}


def key_value_store(name: str, key_serde: AnySerde = None, value_serde: AnySerde = None) -> StoreBuilder:
    """Return the builder of a KeyValueStore."""
    return StoreBuilder(StoreSpec(name, StoreKind.KEY_VALUE, key_serde, value_serde))


def timestamped_key_value_store(name: str, key_serde: AnySerde = None, value_serde: AnySerde = None) -> StoreBuilder:
    """Return the builder of a TimestampedKeyValueStore. `value_serde` is the serde of the value without timestamp."""
    return StoreBuilder(StoreSpec(name, StoreKind.TIMESTAMPED_KEY_VALUE, key_serde, value_serde))


def persistent_key_value_store(name: str, key_serde: AnySerde = None, value_serde: AnySerde = None) -> StoreBuilder:
    """Return the builder of a KeyValueStore in RocksDB (`Stores.persistentKeyValueStore`)."""
    return key_value_store(name, key_serde, value_serde).with_persistence(True)


def in_memory_key_value_store(name: str, key_serde: AnySerde = None, value_serde: AnySerde = None) -> StoreBuilder:
    """Return the builder of a KeyValueStore in memory (`Stores.inMemoryKeyValueStore`)."""
    return key_value_store(name, key_serde, value_serde).with_persistence(False)


def subscription_store(name: str, key_serde: AnySerde = None, value_serde: AnySerde = None) -> StoreBuilder:
    """Return the builder of the subscriptions of a foreign-key join: a TimestampedKeyValueStore of combined keys."""
    return timestamped_key_value_store(name, key_serde, value_serde).with_logged_headers()


def versioned_key_value_store(
    name: str,
    history_retention_ms: int,
    key_serde: AnySerde = None,
    value_serde: AnySerde = None,
    segment_interval_ms: int | None = None,
) -> StoreBuilder:
    """Return the builder of a VersionedKeyValueStore (KIP-889).

    Args:
        name: the name of the store.
        history_retention_ms: how far in the past versions can be read, in milliseconds.
        key_serde: the serde of keys.
        value_serde: the serde of values.
        segment_interval_ms: the length of a segment; by default a fifth of the retention, at least one minute, or a
            third of a retention below one minute, at least two seconds.

    Raises:
        TopologyError: the history retention is negative, or the segment interval is not positive.
    """
    if history_retention_ms < 0:
        raise TopologyError(f"invalid history retention {history_retention_ms} of store {name!r}: expected >= 0 ms")
    if segment_interval_ms is None:
        if history_retention_ms < 60_000:
            segment_interval_ms = max(history_retention_ms // 3, 2_000)
        else:
            segment_interval_ms = max(history_retention_ms // 5, 60_000)
    if segment_interval_ms < 1:
        raise TopologyError(f"invalid segment interval {segment_interval_ms} of store {name!r}: expected >= 1 ms")
    return StoreBuilder(
        StoreSpec(
            name,
            StoreKind.VERSIONED_KEY_VALUE,
            key_serde,
            value_serde,
            segment_interval_ms=segment_interval_ms,
            history_retention_ms=history_retention_ms,
        )
    )


def _windows(kind: StoreKind, name: str, retention_ms: int, window_size_ms: int) -> StoreSpec:
    if retention_ms < 0 or window_size_ms < 0:
        raise TopologyError(f"invalid retention {retention_ms} or window size {window_size_ms}: expected >= 0 ms")
    if window_size_ms > retention_ms:
        raise TopologyError(
            f"invalid retention {retention_ms} of store {name!r}: expected at least the window size, {window_size_ms}"
        )
    return StoreSpec(
        name,
        kind,
        retention_ms=retention_ms,
        window_size_ms=window_size_ms,
        segment_interval_ms=max(retention_ms // 2, LEAST_SEGMENT_INTERVAL_MS),
    )


def window_store(
    name: str,
    retention_ms: int,
    window_size_ms: int,
    key_serde: AnySerde = None,
    value_serde: AnySerde = None,
    retain_duplicates: bool = False,
) -> StoreBuilder:
    """Return the builder of a WindowStore. Times are in milliseconds.

    Raises:
        TopologyError: a time is negative, or the retention is shorter than the window.
    """
    spec = _windows(StoreKind.WINDOW, name, retention_ms, window_size_ms)
    return StoreBuilder(
        msgspec.structs.replace(
            spec, key_serde=key_serde, value_serde=value_serde, retains_duplicates=retain_duplicates
        )
    )


def timestamped_window_store(
    name: str,
    retention_ms: int,
    window_size_ms: int,
    key_serde: AnySerde = None,
    value_serde: AnySerde = None,
    retain_duplicates: bool = False,
) -> StoreBuilder:
    """Return the builder of a TimestampedWindowStore. `value_serde` is the serde of the value without timestamp.

    Raises:
        TopologyError: a time is negative, or the retention is shorter than the window.
    """
    spec = _windows(StoreKind.TIMESTAMPED_WINDOW, name, retention_ms, window_size_ms)
    return StoreBuilder(
        msgspec.structs.replace(
            spec, key_serde=key_serde, value_serde=value_serde, retains_duplicates=retain_duplicates
        )
    )


def persistent_window_store(
    name: str,
    retention_ms: int,
    window_size_ms: int,
    key_serde: AnySerde = None,
    value_serde: AnySerde = None,
    retain_duplicates: bool = False,
) -> StoreBuilder:
    """Return the builder of a WindowStore in RocksDB (`Stores.persistentWindowStore`).

    Raises:
        TopologyError: a time is negative, or the retention is shorter than the window.
    """
    builder = window_store(name, retention_ms, window_size_ms, key_serde, value_serde, retain_duplicates)
    return builder.with_persistence(True)


def in_memory_window_store(
    name: str,
    retention_ms: int,
    window_size_ms: int,
    key_serde: AnySerde = None,
    value_serde: AnySerde = None,
    retain_duplicates: bool = False,
) -> StoreBuilder:
    """Return the builder of a WindowStore in memory (`Stores.inMemoryWindowStore`).

    Raises:
        TopologyError: a time is negative, or the retention is shorter than the window.
    """
    builder = window_store(name, retention_ms, window_size_ms, key_serde, value_serde, retain_duplicates)
    return builder.with_persistence(False)


def session_store(
    name: str, retention_ms: int, key_serde: AnySerde = None, value_serde: AnySerde = None
) -> StoreBuilder:
    """Return the builder of a SessionStore; the retention is in milliseconds.

    Raises:
        TopologyError: the retention is negative.
    """
    if retention_ms < 0:
        raise TopologyError(f"invalid retention {retention_ms} of store {name!r}: expected >= 0 ms")
    return StoreBuilder(
        StoreSpec(
            name,
            StoreKind.SESSION,
            key_serde,
            value_serde,
            retention_ms=retention_ms,
            segment_interval_ms=max(retention_ms // 2, LEAST_SEGMENT_INTERVAL_MS),
        )
    )


def persistent_session_store(
    name: str, retention_ms: int, key_serde: AnySerde = None, value_serde: AnySerde = None
) -> StoreBuilder:
    """Return the builder of a SessionStore in RocksDB (`Stores.persistentSessionStore`).

    Raises:
        TopologyError: the retention is negative.
    """
    return session_store(name, retention_ms, key_serde, value_serde).with_persistence(True)


def in_memory_session_store(
    name: str, retention_ms: int, key_serde: AnySerde = None, value_serde: AnySerde = None
) -> StoreBuilder:
    """Return the builder of a SessionStore in memory (`Stores.inMemorySessionStore`).

    Raises:
        TopologyError: the retention is negative.
    """
    return session_store(name, retention_ms, key_serde, value_serde).with_persistence(False)


def suppress_buffer(name: str, key_serde: AnySerde = None, value_serde: AnySerde = None) -> StoreBuilder:
    """Return the builder of a SuppressBuffer, the buffer of `suppress`. `value_serde` is the serde of one value."""
    return StoreBuilder(StoreSpec(name, StoreKind.SUPPRESS_BUFFER, key_serde, value_serde))


def join_buffer(name: str, grace_ms: int, key_serde: AnySerde = None, value_serde: AnySerde = None) -> StoreBuilder:
    """Return the builder of a JoinBuffer, the buffer of a stream-table join with a grace period in milliseconds."""
    return StoreBuilder(StoreSpec(name, StoreKind.JOIN_BUFFER, key_serde, value_serde, grace_ms=grace_ms))


def outer_join_store(
    name: str,
    key_serde: AnySerde = None,
    left_value_serde: AnySerde = None,
    right_value_serde: AnySerde = None,
) -> StoreBuilder:
    """Return the builder of the OuterJoinStore of a left or outer join of two streams."""
    return StoreBuilder(StoreSpec(name, StoreKind.OUTER_JOIN, key_serde, left_value_serde, right_value_serde))
