"""A StoreContext that records changelog writes, for tests of stores."""

from __future__ import annotations

from typing import Any

from pybroker.streams import serdes
from pybroker.streams.records import Headers, RecordContext
from pybroker.streams.serdes import Serde
from pybroker.streams.state.cache import Cache
from pybroker.streams.state.store import StateStore, StoreContext

Logged = tuple[bytes, bytes | None, int | None, Headers]


class RecordingContext(StoreContext):
    """A context whose record the test sets, and that keeps all changelog records in `logged`."""

    application_id = "app"
    default_key_serde: Serde[Any] | None = serdes.STRING
    default_value_serde: Serde[Any] | None = serdes.STRING

    def __init__(self, cache_bytes: int | None = None) -> None:
        self._cache = None if cache_bytes is None else Cache(cache_bytes)
        self._record: RecordContext | None = RecordContext(0, 0, 0, "in")
        self.logged: list[Logged] = []

    def at(self, timestamp: int, headers: Headers = ()) -> None:
        self._record = RecordContext(timestamp, 0, 0, "in", headers)

    @property
    def record_context(self) -> RecordContext | None:
        return self._record

    def set_record_context(self, context: RecordContext | None) -> None:
        self._record = context

    @property
    def stream_time(self) -> int:
        return -1

    @property
    def cache(self) -> Cache | None:
        return self._cache

    def changelog_topic(self, store_name: str) -> str:
        return f"app-{store_name}-changelog"

    def log_change(
        self, store_name: str, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers
    ) -> None:
        self.logged.append((key, value, timestamp, headers))


def replay(context: RecordingContext, store: StateStore) -> None:
    """Restore a store from the records that another store has logged."""
    for key, value, timestamp, headers in context.logged:
        store.restore(key, value, timestamp or 0, headers)
