"""PersistentMap: an immutable mapping from strings. The cost of a changed copy does not depend on its size.

Owns the structure, a hash trie (Bagwell, *Ideal Hash Trees*, 2001): a copy shares every node with the original except
those between the root and a changed entry. Must not know the values.

The hash is a CRC, so that two nodes of a cluster iterate over the same entries in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar
from zlib import crc32

V = TypeVar("V")

_BITS = 5
_SLOTS = 1 << _BITS
_HASH_BITS = 32
LEAF_ENTRIES = 32
"""A node with more entries is split, unless no bits of the hash are left."""

_Node = dict[str, V] | tuple["_Node[V]", ...]
_Change = tuple[int, str, V | None]
"""The unused bits of the key's hash, the key, and the value. A value of None removes the key."""


class PersistentMap(Mapping[str, V], Generic[V]):
    """An immutable mapping. Values are not None."""

    __slots__ = ("_root", "_size")

    def __init__(self, entries: Mapping[str, V] | None = None) -> None:
        self._root: _Node[V] = {}
        self._size = 0
        if entries:
            self._root = _with_changes({}, [(_hash(key), key, value) for key, value in entries.items()])
            self._size = len(entries)

    def with_changes(self, changes: Mapping[str, V | None]) -> PersistentMap[V]:
        """Return a copy with the changed values. A value of None removes the key."""
        copy: PersistentMap[V] = PersistentMap()
        copy._root = _with_changes(self._root, [(_hash(key), key, value) for key, value in changes.items()])
        copy._size = self._size + sum((changes[key] is not None) - (key in self) for key in changes)
        return copy

    def keys_changed_since(self, before: PersistentMap[V]) -> Iterator[str]:
        """Yield the keys that only one of the maps has, or whose value is another object. Skips shared nodes."""
        return _differing(before._root, self._root)

    def __getitem__(self, key: str) -> V:
        node, bits = self._root, _hash(key)
        while not isinstance(node, dict):
            node, bits = node[bits % _SLOTS], bits >> _BITS
        return node[key]

    def __iter__(self) -> Iterator[str]:
        return _keys(self._root)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self)!r})"


def _hash(key: str) -> int:
    return crc32(key.encode("utf-8", "surrogatepass"))


def _with_changes(node: _Node[V], changes: list[_Change[V]], used: int = 0) -> _Node[V]:
    """Return the changed node. The path to it consumed `used` bits of the hash."""
    if isinstance(node, dict):
        leaf = dict(node)
        for _, key, value in changes:
            if value is None:
                leaf.pop(key, None)
            else:
                leaf[key] = value
        return _split(leaf, used)
    by_slot: dict[int, list[_Change[V]]] = {}
    for bits, key, value in changes:
        by_slot.setdefault(bits % _SLOTS, []).append((bits >> _BITS, key, value))
    slots = list(node)
    for slot, some in by_slot.items():
        slots[slot] = _with_changes(slots[slot], some, used + _BITS)
    return tuple(slots) if any(slots) else {}


def _split(leaf: dict[str, V], used: int) -> _Node[V]:
    if len(leaf) <= LEAF_ENTRIES or used >= _HASH_BITS:
        return leaf
    slots: list[dict[str, V]] = [{} for _ in range(_SLOTS)]
    for key, value in leaf.items():
        slots[(_hash(key) >> used) % _SLOTS][key] = value
    return tuple(_split(slot, used + _BITS) for slot in slots)


def _keys(node: _Node[V]) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
    else:
        for slot in node:
            yield from _keys(slot)


def _entries(node: _Node[V]) -> Iterator[tuple[str, V]]:
    if isinstance(node, dict):
        yield from node.items()
    else:
        for slot in node:
            yield from _entries(slot)


def _differing(old: _Node[V], new: _Node[V]) -> Iterator[str]:
    if old is new:
        return
    if isinstance(old, tuple) and isinstance(new, tuple):
        for before, after in zip(old, new, strict=True):
            yield from _differing(before, after)
        return
    had, has = dict(_entries(old)), dict(_entries(new))
    yield from (key for key in had.keys() | has.keys() if had.get(key) is not has.get(key))
