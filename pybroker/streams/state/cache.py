"""The record cache of a task: it delays and combines updates of stores until a flush or an eviction."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from pybroker.streams.records import Change, Record, RecordContext
from pybroker.streams.state.sorted_map import SortedMap
from pybroker.streams.state.values import LONG

NODE_BYTES = 24
"""The bytes that Kafka counts for the references of one entry (`NamedCache.LRUNode.size`)."""
NO_CONTEXT = RecordContext(-1, -1, -1, "")
"""The context of an entry that was read from the store (`LRUCacheEntry`)."""

BytesListener = Callable[[Record[bytes, Change[bytes]]], None]
"""Receives a flushed entry: its key, the new and the old value, the timestamp and headers of its record."""
FlushListener = Callable[[Record[Any, Change[Any]]], None]
"""Receives a flushed entry of a typed store."""


def context_bytes(context: RecordContext) -> int:
    """Return the memory that Kafka estimates for a context (`ProcessorRecordContext.residentMemorySizeEstimate`)."""
    size = 20 + len(context.topic or "")
    for key, value in context.headers:
        size += len(key) + len(value or b"")
    return size


class CacheEntry:
    """One value in a cache. A dirty entry is not in the store yet; the value None is a delete."""

    __slots__ = ("context", "dirty", "size", "value")

    def __init__(self, key: bytes, value: bytes | None, context: RecordContext, dirty: bool) -> None:
        self.value = value
        self.context = context
        self.dirty = dirty
        self.size = len(key) + NODE_BYTES + 1 + len(value or b"") + context_bytes(context)


class StoreCache:
    """The entries of one store, in three orders: by key, by last use, and dirty keys by last update (`NamedCache`)."""

    def __init__(self, owner: Cache, flushed: Callable[[list[tuple[bytes, CacheEntry]]], None]) -> None:
        self._owner = owner
        self._flushed = flushed
        self._entries: SortedMap[CacheEntry] = SortedMap()
        self._used: OrderedDict[bytes, None] = OrderedDict()
        self._dirty: dict[bytes, None] = {}
        self.size = 0
        """The bytes of all entries, as Kafka counts them."""

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._used)

    def get(self, key: bytes) -> CacheEntry | None:
        """Return an entry and make it the most recently used entry, or return None."""
        entry = self._entries.get(key)
        if entry is not None:
            self._used.move_to_end(key)
        return entry

    def put(self, key: bytes, value: bytes | None, context: RecordContext, dirty: bool) -> None:
        """Add or replace an entry, then evict entries of this store until the cache fits into its limit."""
        entry = CacheEntry(key, value, context, dirty)
        previous = self._entries.get(key)
        self._entries.put(key, entry)
        self._used[key] = None
        self._used.move_to_end(key)
        if dirty:
            self._dirty.pop(key, None)
            self._dirty[key] = None
        self._resize(entry.size - (previous.size if previous is not None else 0))
        # A flush can write to other stores. It can leave this store empty while the cache is over its limit.
        while self._owner.size > self._owner.max_bytes and self._used:
            self._evict()

    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool, include_upper: bool = True
    ) -> Iterator[tuple[bytes, CacheEntry]]:
        """Return an iterator over the entries from `lower` to `upper`. The iteration counts as use, as in Kafka."""
        keys = self._entries.keys(lower, upper, include_upper)
        if not forward:
            keys.reverse()
        return ((key, entry) for key in keys if (entry := self.get(key)) is not None)

    def segments(self, first: int, last: int) -> list[int]:
        """Return the numbers from `first` to `last` with which keys begin, as 8 bytes, in ascending order."""
        found: list[int] = []
        key = self._entries.at_least(LONG.pack(first))
        while key is not None and (number := LONG.unpack_from(key)[0]) <= last:
            found.append(number)
            key = self._entries.at_least(LONG.pack(number + 1))
        return found

    def segmented_range(
        self, numbers: tuple[int, int], bounds: tuple[bytes | None, bytes | None], forward: bool
    ) -> Iterator[tuple[bytes, CacheEntry]]:
        """Return an iterator over the entries of several segments.

        Args:
            numbers: the first and the last segment.
            bounds: the first and the last key inside each segment, without the number; None is an open bound.
            forward: whether the order is ascending.
        """
        lower, upper = bounds
        parts = []
        for number in self.segments(*numbers)[:: 1 if forward else -1]:
            prefix = LONG.pack(number)
            end = LONG.pack(number + 1) if upper is None else prefix + upper
            parts.append(self.range(prefix + (lower or b""), end, forward))
        return (item for part in parts for item in part)

    def flush(self) -> None:
        """Pass all dirty entries to the store, in the order of their last update. The entries stay, as clean ones."""
        self._flush(None)

    def clear(self) -> None:
        """Remove all entries without a flush."""
        self._resize(-self.size)
        self._entries.clear()
        self._used.clear()
        self._dirty.clear()

    def _flush(self, evicted: tuple[bytes, CacheEntry] | None) -> None:
        batch: list[tuple[bytes, CacheEntry]] = []
        if evicted is not None:
            batch.append(evicted)
            self._dirty.pop(evicted[0], None)
        deleted: list[tuple[bytes, CacheEntry]] = []
        for key in self._dirty:
            entry = self._entries.get(key)
            if entry is None:
                continue
            entry.dirty = False
            batch.append((key, entry))
            if entry.value is None:
                deleted.append((key, entry))
        # The listener can write to this cache again. Those entries belong to the next flush.
        self._dirty.clear()
        if batch:
            self._flushed(batch)
        for key, entry in deleted:
            if self._entries.get(key) is entry:
                self._delete(key)

    def _evict(self) -> None:
        key, _ = self._used.popitem(last=False)
        entry = self._entries.remove(key)
        if entry is None:
            return
        self._resize(-entry.size)
        # One dirty entry that leaves makes all dirty entries leave, so that downstream sees updates in their order.
        if entry.dirty:
            self._flush((key, entry))

    def _delete(self, key: bytes) -> None:
        entry = self._entries.remove(key)
        if entry is not None:
            self._used.pop(key, None)
            self._dirty.pop(key, None)
            self._resize(-entry.size)

    def _resize(self, difference: int) -> None:
        self.size += difference
        self._owner.size += difference


class Cache:
    """The caches of all stores of one task, with one limit of bytes (`ThreadCache`, `statestore.cache.max.bytes`).

    The size is always the sum of the stores' sizes. Kafka counts an entry twice that a flush listener adds.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        """The limit in bytes. With 0 every entry is flushed at once; entries are still compared with the store."""
        self.size = 0
        """The bytes of all entries of all stores."""

    def open(self, flushed: Callable[[list[tuple[bytes, CacheEntry]]], None]) -> StoreCache:
        """Return the empty cache of a store. `flushed` receives the dirty entries of each flush."""
        return StoreCache(self, flushed)


def merge_cached(
    cached: Iterator[tuple[bytes, CacheEntry]], stored: Iterator[tuple[bytes, bytes]], forward: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Merge two sorted iterators into one. A cached entry hides the stored value of its key.

    Args:
        cached: entries of the cache, in the order of `forward`.
        stored: keys and values of the store, in the same order.
        forward: whether the order is ascending.
    """
    in_cache, in_store = next(cached, None), next(stored, None)
    while in_cache is not None or in_store is not None:
        if in_store is not None and (in_cache is None or _precedes(in_store[0], in_cache[0], forward)):
            yield in_store
            in_store = next(stored, None)
            continue
        assert in_cache is not None
        if in_store is not None and in_store[0] == in_cache[0]:
            in_store = next(stored, None)
        if in_cache[1].value is not None:
            yield in_cache[0], in_cache[1].value
        in_cache = next(cached, None)


def _precedes(key: bytes, other: bytes, forward: bool) -> bool:
    return key < other if forward else key > other
