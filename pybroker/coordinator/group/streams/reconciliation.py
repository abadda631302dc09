"""Reconciliation of a member with its target: the tasks that it keeps, revokes and takes, and its epoch then.

    keep = has and target        revoke = has - target        take = target - has - unreleased

    An active task is unreleased while a process has it as active task, or another member of the process has it as a
    standby or warm-up task. A standby or warm-up task is unreleased while another member of the process has it. So no
    task is assigned to a member before its owner has revoked it, and a process has a task once.

    A task that changes its role within the member is not revoked:
        standby or warm-up to active    kept in the old role until the active task is released
        active to standby               the standby task is assigned at once, while the active one is revoked
        standby to warm-up, and back    at once

    revoke, and the member still has a part of it -> UNREVOKED_TASKS: keep; its epoch is unchanged
    otherwise                                     -> keep + take; its epoch is the target's:
        some task is unreleased                      -> UNRELEASED_TASKS
        else                                         -> STABLE

Owns that equation (KIP-1071; Kafka's `CurrentAssignmentBuilder`). The owners of tasks are an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from pybroker.coordinator.group.streams.member import MemberState, StreamsMember
from pybroker.coordinator.group.streams.tasks import NOTHING_HELD, HeldTasks, Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pybroker.coordinator.group.streams.tasks import TaskSet

_NONE: frozenset[int] = frozenset()


class UnknownStateError(Exception):
    """The member's state is one of a newer broker, and it has not revoked all tasks yet."""


class Owners(Protocol):
    """The processes that have a task."""

    def active(self, part: str, index: int) -> str | None:
        """Return the process with the active task, None without one."""

    def standby(self, part: str, index: int) -> Collection[str]:
        """Return the processes with the standby task."""

    def warmup(self, part: str, index: int) -> Collection[str]:
        """Return the processes with the warm-up task."""


def reconcile(member: StreamsMember, epoch: int, target: Tasks, owners: Owners, owned: Tasks | None) -> StreamsMember:
    """Return the member after its next step; the same object if there is none.

    `epoch` and `target` are those of the target assignment. `owned` are the tasks in the member's heartbeat, None if it
    contains none. Raises `UnknownStateError`.
    """
    if member.state is MemberState.STABLE and member.epoch == epoch:
        return member
    if member.state is MemberState.UNREVOKED_TASKS:
        if _still_has(member.revoking, owned):
            return member
        # As in Kafka: if there is more to revoke, the member does that in the next epoch.
        return _Step(member, epoch, target, owners, owned).follow(member.epoch + 1)
    if member.state is MemberState.UNKNOWN:
        if owned is None or not owned.is_empty:
            raise UnknownStateError
        return _Step(member, epoch, target, owners, owned).follow(epoch)
    return _Step(member, epoch, target, owners, owned).follow(member.epoch)


def _still_has(revoking: HeldTasks, owned: Tasks | None) -> bool:
    """Return whether the member has some of these tasks; without a report it is assumed to have them."""
    return owned is None or revoking.has_any_of(owned)


class _Role:
    """The tasks of one role, each with the epoch of its assignment: standby and warm-up tasks have none."""

    def __init__(self, has: Mapping[str, Collection[int]], wanted: TaskSet) -> None:
        self.keep: dict[str, set[int]] = {}
        self.revoke: dict[str, set[int]] = {}
        self.take: dict[str, set[int]] = {}
        self.waits = False
        for part in has:
            target = wanted.get(part, _NONE)
            for index in has[part]:
                (self.keep if index in target else self.revoke).setdefault(part, set()).add(index)

    def take_released(
        self, has: Mapping[str, Collection[int]], wanted: TaskSet, is_unreleased: Callable[[str, int], bool]
    ) -> None:
        """Take the wanted tasks that are released."""
        for part, target in wanted.items():
            for index in target.difference(has.get(part, ())):
                if is_unreleased(part, index):
                    self.waits = True
                else:
                    self.take.setdefault(part, set()).add(index)


class _Step:
    """One step of a member's reconciliation."""

    def __init__(self, member: StreamsMember, epoch: int, target: Tasks, owners: Owners, owned: Tasks | None) -> None:
        self._member = member
        self._epoch = epoch
        self._target = target
        self._owners = owners
        self._owned = owned
        has = member.assigned
        self._active = _Role(has.active, target.active)
        self._standby = _Role(has.standby, target.standby)
        self._warmup = _Role(has.warmup, target.warmup)
        self._active.take_released(has.active, target.active, self._is_unreleased_active)
        self._standby.take_released(has.standby, target.standby, self._is_unreleased_standby)
        self._warmup.take_released(has.warmup, target.warmup, self._is_unreleased_warmup)

    def follow(self, epoch: int) -> StreamsMember:
        """Return the member after the step; `epoch` is its epoch if it must revoke tasks first."""
        has = self._member.assigned
        self._demote()
        _convert(has.standby, self._standby, self._warmup)
        _convert(has.warmup, self._warmup, self._standby)
        for held, role in ((has.standby, self._standby), (has.warmup, self._warmup)):
            for part, index in self._promoted(held):
                _discard(role.revoke, part, index)
        revoking = HeldTasks(
            {part: {index: has.active[part][index] for index in found} for part, found in self._active.revoke.items()},
            _frozen(self._standby.revoke),
            _frozen(self._warmup.revoke),
        )
        revokes = not revoking.is_empty and _still_has(revoking, self._owned)
        for held, role in ((has.standby, self._standby), (has.warmup, self._warmup)):
            for part, index in self._promoted(held):
                if revokes or index not in self._active.take.get(part, ()):
                    role.keep.setdefault(part, set()).add(index)
        if revokes:
            return _moved(self._member, MemberState.UNREVOKED_TASKS, epoch, self._kept(takes=False), revoking)
        waits = self._active.waits or self._standby.waits or self._warmup.waits
        state = MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE
        return _moved(self._member, state, self._epoch, self._kept(takes=True), NOTHING_HELD)

    def _kept(self, *, takes: bool) -> HeldTasks:
        """Return the tasks that the member keeps, and with `takes` those that it takes."""
        held = self._member.assigned.active
        active = {part: {index: held[part][index] for index in found} for part, found in self._active.keep.items()}
        standby, warmup = _frozen(self._standby.keep), _frozen(self._warmup.keep)
        if takes:
            for part, found in self._active.take.items():
                active.setdefault(part, {}).update(dict.fromkeys(sorted(found), self._epoch))
            standby, warmup = _merged(standby, self._standby.take), _merged(warmup, self._warmup.take)
        return HeldTasks(active, standby, warmup)

    def _demote(self) -> None:
        """Assign a standby task at once if it was the member's own active task."""
        for part, epochs in self._member.assigned.active.items():
            for index in epochs.keys() & self._standby.take.get(part, set()):
                _discard(self._standby.take, part, index)
                self._standby.keep.setdefault(part, set()).add(index)

    def _promoted(self, held: TaskSet) -> list[tuple[str, int]]:
        """Return those of the member's tasks that are to become active."""
        wanted = self._target.active
        return [(part, index) for part, found in held.items() for index in found & wanted.get(part, _NONE)]

    def _is_unreleased_active(self, part: str, index: int) -> bool:
        has = self._member.assigned
        return (
            self._owners.active(part, index) is not None
            or self._is_with_other(self._owners.standby(part, index), has.standby, part, index)
            or self._is_with_other(self._owners.warmup(part, index), has.warmup, part, index)
        )

    def _is_unreleased_standby(self, part: str, index: int) -> bool:
        has = self._member.assigned
        runs_elsewhere = self._is_own(self._owners.active(part, index)) and index not in has.active.get(part, ())
        return (
            runs_elsewhere
            or self._member.process_id in self._owners.standby(part, index)
            or self._is_with_other(self._owners.warmup(part, index), has.warmup, part, index)
        )

    def _is_unreleased_warmup(self, part: str, index: int) -> bool:
        return (
            self._is_own(self._owners.active(part, index))
            or self._is_with_other(self._owners.standby(part, index), self._member.assigned.standby, part, index)
            or self._member.process_id in self._owners.warmup(part, index)
        )

    def _is_own(self, process_id: str | None) -> bool:
        return process_id == self._member.process_id

    def _is_with_other(self, processes: Collection[str], held: TaskSet, part: str, index: int) -> bool:
        """Return whether another member of the process has the task."""
        return self._member.process_id in processes and index not in held.get(part, _NONE)


def _convert(held: TaskSet, outgoing: _Role, incoming: _Role) -> None:
    """Change the role of a member's copy of a task without a revocation."""
    for part, found in held.items():
        for index in found & incoming.take.get(part, set()):
            _discard(incoming.take, part, index)
            incoming.keep.setdefault(part, set()).add(index)
            _discard(outgoing.revoke, part, index)


def _discard(tasks: dict[str, set[int]], part: str, index: int) -> None:
    found = tasks.get(part)
    if found is not None:
        found.discard(index)
        if not found:
            del tasks[part]


def _frozen(tasks: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {part: frozenset(found) for part, found in tasks.items()}


def _merged(tasks: TaskSet, more: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {part: tasks.get(part, _NONE) | more.get(part, set()) for part in (*tasks, *(more.keys() - tasks.keys()))}


def _moved(
    member: StreamsMember, state: MemberState, epoch: int, assigned: HeldTasks, revoking: HeldTasks
) -> StreamsMember:
    return msgspec.structs.replace(
        member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=revoking
    )
