"""Java's PriorityQueue: a binary heap whose order of equal elements some results of Kafka's code depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A queue whose head is an element with the smallest key. Equal keys have the order of Java's heap."""

    def __init__(self, key: Callable[[T], float]) -> None:
        self._key = key
        self._heap: list[T] = []

    def offer(self, element: T) -> None:
        """Add an element."""
        self._heap.append(element)
        at, key = len(self._heap) - 1, self._key(element)
        while at > 0:
            parent = (at - 1) // 2
            if key >= self._key(self._heap[parent]):
                break
            self._heap[at] = self._heap[parent]
            at = parent
        self._heap[at] = element

    def peek(self) -> T | None:
        """Return the head, or None if the queue is empty."""
        return self._heap[0] if self._heap else None

    def poll(self) -> T:
        """Remove and return the head.

        Raises:
            IndexError: the queue is empty.
        """
        head = self._heap[0]
        last = self._heap.pop()
        if self._heap:
            self._sift_down(last)
        return head

    def _sift_down(self, element: T) -> None:
        """Put an element at the root and move it down until no child is smaller."""
        at, key, size = 0, self._key(element), len(self._heap)
        while (child := 2 * at + 1) < size:
            right = child + 1
            if right < size and self._key(self._heap[child]) > self._key(self._heap[right]):
                child = right
            if key <= self._key(self._heap[child]):
                break
            self._heap[at] = self._heap[child]
            at = child
        self._heap[at] = element

    def __len__(self) -> int:
        return len(self._heap)
