"""Java's TreeSet: a red-black tree. It matters where keys change while they are in the set, as Kafka lets them.

Then the order is not that of the keys. It follows from the shape of the tree at each insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class _Entry(Generic[T]):
    """A node of the tree (`TreeMap.Entry`)."""

    __slots__ = ("element", "is_red", "left", "parent", "right")

    def __init__(self, element: T, parent: _Entry[T] | None) -> None:
        self.element = element
        self.parent = parent
        self.left: _Entry[T] | None = None
        self.right: _Entry[T] | None = None
        self.is_red = True


class TreeSet(Generic[T]):
    """A set that compares elements by a key when one is added. Elements cannot be removed."""

    def __init__(self, key: Callable[[T], tuple[int, str]]) -> None:
        self._key = key
        self._root: _Entry[T] | None = None

    def add(self, element: T) -> None:
        """Add an element, unless the search for its place finds an equal key."""
        key, entry, parent, goes_left = self._key(element), self._root, None, False
        while entry is not None:
            other = self._key(entry.element)
            if key == other:
                return
            parent, goes_left = entry, key < other
            entry = entry.left if goes_left else entry.right
        new = _Entry(element, parent)
        if parent is None:
            self._root = new
        elif goes_left:
            parent.left = new
        else:
            parent.right = new
        self._balance(new)

    def __iter__(self) -> Iterator[T]:
        stack: list[_Entry[T]] = []
        entry = self._root
        while stack or entry is not None:
            while entry is not None:
                stack.append(entry)
                entry = entry.left
            entry = stack.pop()
            yield entry.element
            entry = entry.right

    def _balance(self, entry: _Entry[T]) -> None:
        """Restore the rules of a red-black tree above a new entry: no red entry has a red parent."""
        while (parent := entry.parent) is not None and parent.is_red and (grandparent := parent.parent) is not None:
            on_left = parent is grandparent.left
            uncle = grandparent.right if on_left else grandparent.left
            if uncle is not None and uncle.is_red:
                parent.is_red = uncle.is_red = False
                grandparent.is_red = True
                entry = grandparent
                continue
            if entry is (parent.right if on_left else parent.left):
                # The inner grandchild moves to the outside, so that one rotation above it suffices.
                self._rotate(parent, to_left=on_left)
                entry, parent = parent, entry
            parent.is_red = False
            grandparent.is_red = True
            self._rotate(grandparent, to_left=not on_left)
        if self._root is not None:
            self._root.is_red = False

    def _rotate(self, entry: _Entry[T], *, to_left: bool) -> None:
        """Move an entry below its right child (to the left), or below its left child."""
        child = entry.right if to_left else entry.left
        assert child is not None, "the child that moves up exists"
        inner = child.left if to_left else child.right
        if to_left:
            entry.right, child.left = inner, entry
        else:
            entry.left, child.right = inner, entry
        if inner is not None:
            inner.parent = entry
        child.parent = entry.parent
        if entry.parent is None:
            self._root = child
        elif entry.parent.left is entry:
            entry.parent.left = child
        else:
            entry.parent.right = child
        entry.parent = child
