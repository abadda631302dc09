"""The sticky assignor: tasks stay where they are, as far as the load of processes allows.

    1  an active task stays with its member, up to the quota of active tasks for each member
    2  an active task goes to a member that has its state, up to that quota
    3  other active tasks go to the process with the lowest load, and there to the member with the fewest tasks
    4  a standby task goes to its previous active or standby member, up to the quota of all tasks, else as in 3;
       a process has a task once

Owns that algorithm, and computes the same result as Kafka's `StickyTaskAssignor`, including the order of equal
candidates, which depends on Java's collections.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from pybroker.client.java.hash_order import in_hash_order, string_hash
from pybroker.client.java.priority_queue import PriorityQueue
from pybroker.coordinator.group.streams.assignors.process_load import ProcessLoad, Task
from pybroker.coordinator.group.streams.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.coordinator.group.streams.assignors.spec import StreamsGroupSpec


class _Quota:
    """The number of tasks for each member, rounded up; lower for the others once a member has reached it."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = self._compute()

    def reached(self, count: int) -> None:
        """Note that a member has this number of tasks."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self.each = self._compute()

    def _compute(self) -> int:
        # Java's division truncates. The number of tasks is negative if members have more than the quota.
        if not self._members:
            return 0
        whole = int(self._tasks / self._members)
        return whole + (self._tasks - whole * self._members > 0)


class _Candidate(NamedTuple):
    """A member that has the state of a task."""

    member_id: str
    was_standby: bool
    offset: int


class _Assignment:
    """An assignment in progress."""

    def __init__(self, spec: StreamsGroupSpec) -> None:
        self._spec = spec
        active = sum(part.tasks for part in spec.subtopologies.values())
        stateful = sum(part.tasks for part in spec.subtopologies.values() if part.has_state)
        self._active_quota = _Quota(active, len(spec.members))
        self._quota = _Quota(active + stateful * spec.standby_replicas, len(spec.members))
        # The member with each active task, and the members with the state of each task, the best first.
        self._owners: dict[Task, str] = {}
        self._copies: dict[Task, list[str]] = {}
        self._loads: dict[str, ProcessLoad] = {}
        self._read_members()
        processes = _in_process_order(list(self._loads), len(spec.members))
        self._in_order = [self._loads[process_id] for process_id in processes]

    def _read_members(self) -> None:
        candidates: defaultdict[Task, list[_Candidate]] = defaultdict(list)
        for member_id in in_hash_order(sorted(self._spec.members)):
            member = self._spec.members[member_id]
            self._loads.setdefault(member.process_id, ProcessLoad()).counts[member_id] = 0
            self._owners.update(((part, index), member_id) for part, held in member.active.items() for index in held)
            for part, held in member.standby.items():
                offsets = member.offsets.get(part, {})
                for index in held:
                    candidates[part, index].append(_Candidate(member_id, True, offsets.get(index, 0)))
            for part, offsets in member.offsets.items():
                for index in offsets.keys() - member.standby.get(part, frozenset()):
                    candidates[part, index].append(_Candidate(member_id, False, offsets[index]))
        for task, found in candidates.items():
            found.sort(key=lambda candidate: (not candidate.was_standby, -candidate.offset))
            self._copies[task] = [candidate.member_id for candidate in found]

    def assign_active(self) -> None:
        """Assign every task to one member."""
        tasks = self._tasks(stateful=False)
        tasks.sort(key=lambda task: (task[1], task[0]))
        tasks = [task for task in tasks if not self._offer_active(self._owners.get(task), task)]
        tasks = [task for task in tasks if not self._offer_active(self._least_loaded(task, None), task)]
        tasks.sort()
        queue = self._queue()
        for task in tasks:
            load = queue.poll()
            self._count(load.add_to_least_loaded(task, is_active=True))
            queue.offer(load)

    def assign_standby(self) -> None:
        """Assign standby tasks for each task with state, on other processes than its active task."""
        tasks = self._tasks(stateful=True)
        tasks.sort(key=lambda task: (task[1], task[0]), reverse=True)
        left = []
        for task in tasks:
            for number in range(self._spec.standby_replicas):
                if not self._keep_standby(task):
                    left.append((task, self._spec.standby_replicas - number))
                    break
        left.sort(reverse=True)
        queue = self._queue()
        for task, replicas in left:
            for _ in range(replicas):
                if not self._add_standby(queue, task):
                    break

    def result(self) -> dict[str, Tasks]:
        """Return the tasks of each member."""
        found = {}
        for member_id, member in self._spec.members.items():
            load = self._loads[member.process_id]
            active, standby = (kind.get(member_id, ()) for kind in (load.active, load.standby))
            found[member_id] = Tasks(_by_part(active), _by_part(standby))
        return found

    def _tasks(self, *, stateful: bool) -> list[Task]:
        return [
            (part, index)
            for part, spec in self._spec.subtopologies.items()
            if spec.has_state or not stateful
            for index in range(spec.tasks)
        ]

    def _queue(self) -> PriorityQueue[ProcessLoad]:
        queue = PriorityQueue[ProcessLoad](lambda load: load.load)
        for load in self._in_order:
            queue.offer(load)
        return queue

    def _load_of(self, member_id: str) -> ProcessLoad:
        return self._loads[self._spec.members[member_id].process_id]

    def _count(self, tasks: int) -> None:
        self._active_quota.reached(tasks)
        self._quota.reached(tasks)

    def _offer_active(self, member_id: str | None, task: Task) -> bool:
        """Assign a task to a member, unless its quota is reached."""
        if member_id is None:
            return False
        load = self._load_of(member_id)
        if load.counts[member_id] >= self._active_quota.each:
            return False
        self._count(load.add(member_id, task, is_active=True))
        return True

    def _keep_standby(self, task: Task) -> bool:
        """Assign a standby task to its previous active or standby member, if possible."""
        owner = self._owners.get(task)
        if owner is not None and not self._load_of(owner).has(task) and self._offer_standby(owner, task):
            return True
        copy = self._least_loaded(task, task)
        return copy is not None and self._offer_standby(copy, task)

    def _offer_standby(self, member_id: str, task: Task) -> bool:
        load = self._load_of(member_id)
        if load.counts[member_id] >= self._quota.each:
            return False
        self._quota.reached(load.add(member_id, task, is_active=False))
        return True

    def _add_standby(self, queue: PriorityQueue[ProcessLoad], task: Task) -> bool:
        """Assign a standby task to the process with the lowest load among those without the task."""
        polled = []
        found = False
        while len(queue) and not found:
            load = queue.poll()
            polled.append(load)
            if not load.has(task):
                self._quota.reached(load.add_to_least_loaded(task, is_active=False))
                found = True
        for load in reversed(polled):
            queue.offer(load)
        return found

    def _least_loaded(self, task: Task, without: Task | None) -> str | None:
        """Return a member with the state of a task: the first, or one whose process and member have less load."""
        found: str | None = None
        process_load = member_load = 0.0
        for member_id in self._copies.get(task, ()):
            load = self._load_of(member_id)
            if without is not None and load.has(without):
                continue
            count = load.counts[member_id]
            if found is None or (load.load < process_load and count < member_load):
                found, process_load, member_load = member_id, load.load, count
        return found


def assign(spec: StreamsGroupSpec) -> dict[str, Tasks]:
    """Return the tasks of each member. Without members no task is assigned."""
    if not spec.members:
        return {}
    assignment = _Assignment(spec)
    assignment.assign_active()
    if spec.standby_replicas > 0:
        assignment.assign_standby()
    return assignment.result()


def _in_process_order(processes: list[str], members: int) -> list[str]:
    """Return processes in the order of Kafka's hash map of them.

    The map is created with the capacity for the members. `computeIfAbsent` inserts at the head of a bucket, and resizes
    the table before an insertion only.
    """
    table = 1 << max(members - 1, 0).bit_length()
    while len(processes) - 1 > table * 3 // 4:
        table *= 2

    def bucket(process_id: str) -> int:
        value = string_hash(process_id)
        return (value ^ value >> 16) & (table - 1)

    newest_first = processes[::-1]
    return sorted(newest_first, key=bucket)


def _by_part(tasks: Sequence[Task]) -> dict[str, frozenset[int]]:
    indexes: defaultdict[str, set[int]] = defaultdict(set)
    for part, index in tasks:
        indexes[part].add(index)
    return {part: frozenset(found) for part, found in indexes.items()}
