"""How a store writes through the cache of its task."""

from __future__ import annotations

from collections.abc import Callable

from pybroker.streams.records import Change, Record, RecordContext
from pybroker.streams.state.cache import NO_CONTEXT, BytesListener, CacheEntry, StoreCache
from pybroker.streams.state.store import StoreContext

OUTSIDE_PROCESSING = RecordContext(0, -1, -1, None)
"""The context of a write that no record causes."""


def current_context(context: StoreContext) -> RecordContext:
    """Return the context of the current record, or the context of writes outside of processing."""
    return context.record_context or OUTSIDE_PROCESSING


class CachingLayer:
    """Writes through a StoreCache: updates of one key between two flushes become one update.

    `read` and `write` access the store below with keys of the cache. A task without a cache writes directly.
    """

    def __init__(self, read: Callable[[bytes], bytes | None], write: Callable[[bytes, bytes | None], None]) -> None:
        self._read = read
        self._write = write
        self._listener: BytesListener | None = None
        self._send_old_values = False
        self._context: StoreContext | None = None
        self.cache: StoreCache | None = None
        """The cache of the store; None if the task has none."""

    def init(self, context: StoreContext) -> None:
        """Open the cache of the store."""
        self._context = context
        self.cache = context.cache.open(self._flushed) if context.cache is not None else None

    def set_listener(self, listener: BytesListener, send_old_values: bool) -> bool:
        """Set the receiver of flushed entries. Returns False if the task has no cache."""
        self._listener = listener
        self._send_old_values = send_old_values
        return self.cache is not None

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a value, or None to delete, with the context of the current record."""
        if self.cache is None or self._context is None:
            self._write(key, value)
        else:
            self.cache.put(key, value, current_context(self._context), True)

    def add_clean(self, key: bytes, value: bytes) -> None:
        """Add a value that was read from the store."""
        if self.cache is not None:
            self.cache.put(key, value, NO_CONTEXT, False)

    def get(self, key: bytes) -> CacheEntry | None:
        """Return the cached entry of a key, or None."""
        return self.cache.get(key) if self.cache is not None else None

    def flush(self) -> None:
        """Flush the cache of the store."""
        if self.cache is not None:
            self.cache.flush()

    def close(self) -> None:
        """Flush and remove all entries."""
        if self.cache is not None:
            self.cache.flush()
            self.cache.clear()

    def _flushed(self, batch: list[tuple[bytes, CacheEntry]]) -> None:
        for key, entry in batch:
            self._flush_entry(key, entry)

    def _flush_entry(self, key: bytes, entry: CacheEntry) -> None:
        context = self._context
        assert context is not None
        new, listener, old = entry.value, self._listener, None
        if listener is not None:
            if new is None or self._send_old_values:
                old = self._read(key)
            if new is None and old is None:
                # The key was added and deleted between two flushes: neither the store nor downstream knows it.
                return
        previous = context.record_context
        context.set_record_context(entry.context)
        try:
            self._write(key, new)
            if listener is not None:
                change = Change(new, old if self._send_old_values else None)
                listener(Record(key, change, entry.context.timestamp, entry.context.headers))
        finally:
            context.set_record_context(previous)
