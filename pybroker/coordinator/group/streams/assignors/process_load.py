"""The load of one process during an assignment: the tasks of its members.

Owns the counts, and the choice of the member with the fewest tasks (Kafka's `ProcessState`).
"""

from __future__ import annotations

from typing import TypeAlias

from pybroker.client.java.hash_order import in_hash_order
from pybroker.client.java.priority_queue import PriorityQueue

Task: TypeAlias = tuple[str, int]
"""Subtopology id and partition."""


class ProcessLoad:
    """The tasks assigned to a process so far."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """Number of tasks of each member."""
        self.active: dict[str, list[Task]] = {}
        self.standby: dict[str, list[Task]] = {}
        self._tasks: set[Task] = set()
        self._total = 0
        # The members by their number of tasks; None if it is out of date.
        self._queue: PriorityQueue[list[str | int]] | None = None

    @property
    def load(self) -> float:
        """Number of tasks for each member."""
        return self._total / len(self.counts)

    def has(self, task: Task) -> bool:
        """Return whether a member of the process has the task."""
        return task in self._tasks

    def add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        """Assign a task to a member; returns its number of tasks."""
        self._queue = None
        return self._add(member_id, task, is_active)

    def add_to_least_loaded(self, task: Task, *, is_active: bool) -> int:
        """Assign a task to the member with the fewest tasks; returns its number of tasks."""
        queue = self._queue
        if queue is None:
            queue = self._queue = PriorityQueue(lambda entry: int(entry[1]))
            for member_id in in_hash_order(self.counts):
                queue.offer([member_id, self.counts[member_id]])
        entry = queue.poll()
        count = entry[1] = self._add(str(entry[0]), task, is_active)
        queue.offer(entry)
        return count

    def _add(self, member_id: str, task: Task, is_active: bool) -> int:
        self._total += 1
        self._tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member_id, []).append(task)
        self.counts[member_id] += 1
        return self.counts[member_id]
