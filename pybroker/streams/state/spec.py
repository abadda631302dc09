"""The definition of a store as a value: builders change it, and construction makes a store of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from pybroker.streams.serdes import AnySerde


class StoreKind(Enum):
    """The type of a store."""

    KEY_VALUE = "key-value"
    TIMESTAMPED_KEY_VALUE = "timestamped key-value"
    VERSIONED_KEY_VALUE = "versioned key-value"
    WINDOW = "window"
    TIMESTAMPED_WINDOW = "timestamped window"
    SESSION = "session"
    SUPPRESS_BUFFER = "suppress buffer"
    JOIN_BUFFER = "join buffer"
    OUTER_JOIN = "outer join"


WINDOWED_KINDS = frozenset({StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW, StoreKind.SESSION})
BUFFER_KINDS = frozenset({StoreKind.SUPPRESS_BUFFER, StoreKind.JOIN_BUFFER})
"""Stores in memory, which the changelog restores."""
UNCACHED_KINDS = frozenset({StoreKind.SUPPRESS_BUFFER, StoreKind.JOIN_BUFFER, StoreKind.OUTER_JOIN})


class StoreSpec(msgspec.Struct, frozen=True):
    """Everything that defines a store. All times are in milliseconds.

    `retention_ms` of a session store and of a window store limit how long a window is readable. A window store with
    `time_ordered` iterates by window start first; otherwise it iterates by key first within a segment. The changelog of
    a store with `logs_headers` has the headers of the record that is processed; other changelogs have none.
    `persistent` is None for the default of the application (`default.dsl.store`). Buffers are always in memory.
    """

    name: str
    kind: StoreKind
    key_serde: AnySerde = None
    value_serde: AnySerde = None
    other_value_serde: AnySerde = None
    caching: bool = False
    logging: bool = True
    log_config: Mapping[str, str] = {}
    retention_ms: int | None = None
    window_size_ms: int | None = None
    segment_interval_ms: int | None = None
    history_retention_ms: int | None = None
    grace_ms: int | None = None
    retains_duplicates: bool = False
    time_ordered: bool = False
    logs_headers: bool = False
    persistent: bool | None = None

    @property
    def layout(self) -> str:
        """The type of the store, and what else the keys of its database depend on."""
        parts = [self.kind.value]
        if self.segment_interval_ms is not None:
            parts.append(f"segments of {self.segment_interval_ms} ms")
        if self.retains_duplicates:
            parts.append("duplicates")
        if self.time_ordered:
            parts.append("time order")
        return ", ".join(parts)
