"""The state store of a table while the DSL builds it: its name, its serdes and its builder (`MaterializedInternal`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybroker.streams.dsl.graph_builder import GraphBuilder
from pybroker.streams.dsl.options import Materialized
from pybroker.streams.errors import TopologyError
from pybroker.streams.serdes import AnySerde
from pybroker.streams.state import builders
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.windows import (
    MAX_TIMESTAMP,
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    milliseconds,
)

OPTIONS = Materialized.__optional_keys__


def has_materialized(options: Mapping[str, Any]) -> bool:
    """Return whether a call has any option of the state store. Kafka numbers nodes differently if it has none."""
    return not OPTIONS.isdisjoint(options)


class Materialization:
    """The store of one table, from the options of a call."""

    def __init__(self, options: Mapping[str, Any], graph: GraphBuilder | None = None, prefix: str = "") -> None:
        """Read the options.

        Args:
            options: the checked keyword arguments of a call.
            graph: gives a name to a store without one; None leaves it without a name.
            prefix: the beginning of that name.

        Raises:
            TopologyError: `history_retention` has no `store` beside it.
        """
        self.key_serde: AnySerde = options.get("key_serde")
        self.value_serde: AnySerde = options.get("value_serde")
        self.caching: bool = options.get("caching", True)
        logging = options.get("logging", True)
        self.logging = logging is not False
        self.log_config: dict[str, str] = dict(logging) if isinstance(logging, Mapping) else {}
        self.retention = options.get("retention")
        history = options.get("history_retention")
        self.history_retention_ms = None if history is None else milliseconds("history_retention", history)
        store: str | None = options.get("store")
        if history is not None and store is None:
            raise TopologyError("history_retention has no store beside it: a versioned store needs a name")
        self.queryable = store is not None
        self._builder: StoreBuilder | None = None
        self.store = graph.new_store_name(prefix) if store is None and graph is not None else store

    @property
    def queryable_name(self) -> str | None:
        """The name by which the store can be queried, or None."""
        return self.store if self.queryable else None

    @property
    def is_versioned(self) -> bool:
        """Whether the store keeps old values."""
        return self.history_retention_ms is not None

    def with_defaults(self, key_serde: AnySerde, value_serde: AnySerde = None) -> Materialization:
        """Use these serdes where the call has none."""
        self.key_serde = key_serde if self.key_serde is None else self.key_serde
        self.value_serde = value_serde if self.value_serde is None else self.value_serde
        return self

    def key_value_builder(self) -> StoreBuilder:
        """Return the builder of a timestamped or versioned key-value store."""
        assert self.store is not None, "a materialized table has a store name"
        if self.history_retention_ms is not None:
            versioned = builders.versioned_key_value_store(
                self.store, self.history_retention_ms, self.key_serde, self.value_serde
            )
            return self._once(versioned.with_logging(self.logging, self.log_config))
        return self._finished(builders.timestamped_key_value_store(self.store, self.key_serde, self.value_serde))

    def window_builder(self, windows: TimeWindows | UnlimitedWindows, emit: EmitStrategy) -> StoreBuilder:
        """Return the builder of a window store that keeps a window until it closes."""
        retention = min(windows.size_ms + windows.grace_ms, MAX_TIMESTAMP)
        return self._finished(_ordered(self._windowed(windows.size_ms, retention), emit))

    def sliding_builder(self, windows: SlidingWindows, emit: EmitStrategy) -> StoreBuilder:
        """Return the builder of a window store that keeps what a late record needs to compute its windows."""
        difference = windows.time_difference_ms
        builder = self._windowed(difference, difference * 2 + windows.grace_ms)
        return self._finished(_ordered(builder, emit), cached=not emit.on_window_close)

    def session_builder(self, windows: SessionWindows, emit: EmitStrategy) -> StoreBuilder:
        """Return the builder of a session store that keeps a session until it closes."""
        assert self.store is not None, "a materialized table has a store name"
        retention = self._retention(windows.gap_ms + windows.grace_ms, "the inactivity gap plus the grace")
        builder = builders.session_store(self.store, retention, self.key_serde, self.value_serde)
        return self._finished(_ordered(builder, emit), cached=not emit.on_window_close)

    def _windowed(self, size_ms: int, least: int) -> StoreBuilder:
        assert self.store is not None, "a materialized table has a store name"
        retention = self._retention(least, "the size of the window plus the grace")
        return builders.timestamped_window_store(self.store, retention, size_ms, self.key_serde, self.value_serde)

    def _retention(self, least: int, what: str) -> int:
        retention = least if self.retention is None else milliseconds("retention", self.retention)
        if retention < least:
            raise TopologyError(
                f"invalid retention {retention} ms of store {self.store}: expected at least {what}, {least} ms"
            )
        return retention

    def _finished(self, builder: StoreBuilder, *, cached: bool = True) -> StoreBuilder:
        """Return the builder with logging and caching. Kafka gives no cache to final sliding windows and sessions."""
        return self._once(builder.with_logging(self.logging, self.log_config).with_caching(self.caching and cached))

    def _once(self, builder: StoreBuilder) -> StoreBuilder:
        """Return the first builder each time: all operators of a cogrouped aggregation share one store."""
        if self._builder is None:
            self._builder = builder
        return self._builder


def _ordered(builder: StoreBuilder, emit: EmitStrategy) -> StoreBuilder:
    """Return the builder in time order if results are forwarded when their windows close."""
    return builder.with_time_order() if emit.on_window_close else builder
