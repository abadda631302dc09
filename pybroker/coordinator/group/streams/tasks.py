"""Tasks of a streams group, as values: those of a target, and those that a member has.

A task is a subtopology and a partition. Active tasks process records, standby tasks copy state, and warm-up tasks copy
state before they become active. Owns both types and set operations. Decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TaskSet: TypeAlias = "Mapping[str, frozenset[int]]"
"""Partitions by subtopology id; no subtopology without partitions."""
ActiveTasks: TypeAlias = "Mapping[str, Mapping[int, int]]"
"""Partitions by subtopology id, each with the member epoch of its assignment."""


class Tasks(msgspec.Struct, frozen=True):
    """The tasks of a target, or those in a heartbeat."""

    active: TaskSet = {}
    standby: TaskSet = {}
    warmup: TaskSet = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no task."""
        return not (self.active or self.standby or self.warmup)


class HeldTasks(msgspec.Struct, frozen=True):
    """The tasks that a member has, or must revoke."""

    active: ActiveTasks = {}
    standby: TaskSet = {}
    warmup: TaskSet = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no task."""
        return not (self.active or self.standby or self.warmup)

    def has_any_of(self, owned: Tasks) -> bool:
        """Return whether one of these tasks is in the same role in `owned`."""
        active = any(not owned.active.get(part, _NONE).isdisjoint(self.active[part]) for part in self.active)
        return active or _meets(self.standby, owned.standby) or _meets(self.warmup, owned.warmup)

    def contains(self, owned: Tasks) -> bool:
        """Return whether all tasks of `owned` are among these, in the same role."""
        active = all(part in self.active and owned.active[part] <= self.active[part].keys() for part in owned.active)
        return active and _within(owned.standby, self.standby) and _within(owned.warmup, self.warmup)


NO_TASKS = Tasks()
NOTHING_HELD = HeldTasks()
_NONE: frozenset[int] = frozenset()


def task_set(pairs: Iterable[tuple[str, Iterable[int]]]) -> TaskSet:
    """Return partitions by subtopology id; a subtopology may occur several times."""
    found: dict[str, frozenset[int]] = {}
    for part, partitions in pairs:
        merged = found.get(part, _NONE).union(partitions)
        if merged:
            found[part] = merged
    return found


def without_epochs(active: ActiveTasks) -> TaskSet:
    """Return active tasks without their epochs."""
    return {part: frozenset(epochs) for part, epochs in active.items()}


def _meets(one: TaskSet, other: TaskSet) -> bool:
    return any(not one[part].isdisjoint(other.get(part, _NONE)) for part in one)


def _within(one: TaskSet, other: TaskSet) -> bool:
    return all(one[part] <= other.get(part, _NONE) for part in one)
