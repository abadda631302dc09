"""Reconciliation of a member of a streams group: that each step is Kafka's own, and that no task has two owners."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group.streams.member import MemberState, StreamsMember
from pybroker.coordinator.group.streams.reconciliation import reconcile
from pybroker.coordinator.group.streams.tasks import HeldTasks, Tasks, TaskSet, task_set, without_epochs
from tests.support import java_oracle

TASKS = [(part, index) for part in ("0", "1") for index in range(3)]
ROLES = ("active", "standby", "warmup")
PROCESSES = ("own", "other")


class Case(NamedTuple):
    """A member and the input of its reconciliation."""

    member: StreamsMember
    epoch: int
    target: Tasks
    owned: Tasks | None
    active: dict[tuple[str, int], str]
    standby_owners: dict[tuple[str, int], list[str]]
    warmup_owners: dict[tuple[str, int], list[str]]


class Owners:
    """The owners of a case."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def active(self, part: str, index: int) -> str | None:
        return self._case.active.get((part, index))

    def standby(self, part: str, index: int) -> Collection[str]:
        return self._case.standby_owners.get((part, index), ())

    def warmup(self, part: str, index: int) -> Collection[str]:
        return self._case.warmup_owners.get((part, index), ())


def _of_roles(roles: dict[tuple[str, int], str], role: str) -> TaskSet:
    return task_set((part, (index,)) for (part, index), one in roles.items() if one == role)


def _tasks(roles: dict[tuple[str, int], str]) -> Tasks:
    return Tasks(*(_of_roles(roles, role) for role in ROLES))


def _held(roles: dict[tuple[str, int], str]) -> HeldTasks:
    active = {part: dict.fromkeys(sorted(indexes), 3) for part, indexes in _of_roles(roles, "active").items()}
    return HeldTasks(active, _of_roles(roles, "standby"), _of_roles(roles, "warmup"))


ANY_ROLES = st.dictionaries(st.sampled_from(TASKS), st.sampled_from(ROLES), max_size=6)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any member in any state, whose owners contain the member's own tasks."""
    assigned = draw(ANY_ROLES)
    state = draw(st.sampled_from([MemberState.STABLE, MemberState.UNREVOKED_TASKS, MemberState.UNRELEASED_TASKS]))
    revoking = {}
    if state is MemberState.UNREVOKED_TASKS:
        revoking = {task: role for task, role in draw(ANY_ROLES).items() if task not in assigned}
    member = StreamsMember(
        "m",
        process_id="own",
        epoch=5,
        previous_epoch=4,
        state=state,
        assigned=_held(assigned),
        revoking=_held(revoking),
    )
    owners: dict[str, dict[tuple[str, int], list[str]]] = {role: {} for role in ROLES}
    for task, role in {**assigned, **revoking}.items():
        owners[role][task] = ["own"]
    for role in ROLES:
        for task in draw(st.lists(st.sampled_from(TASKS), unique=True, max_size=3)):
            owners[role].setdefault(task, []).append(draw(st.sampled_from(PROCESSES)))
    owned = draw(st.none() | ANY_ROLES.map(_tasks) | st.just(_tasks(assigned)))
    return Case(
        member,
        draw(st.sampled_from([5, 6, 7])),
        _tasks(draw(ANY_ROLES)),
        owned,
        {task: processes[-1] for task, processes in owners["active"].items()},
        owners["standby"],
        owners["warmup"],
    )


@given(cases())
def test_a_step_takes_only_released_tasks(case: Case) -> None:
    after = reconcile(case.member, case.epoch, case.target, Owners(case), case.owned)
    before = without_epochs(case.member.assigned.active)
    for part, indexes in without_epochs(after.assigned.active).items():
        for index in indexes - before.get(part, frozenset()):
            assert (part, index) not in case.active
            assert index in case.target.active[part]


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running_with_streams_groups("StreamsGroupOracle") as running:
        yield running


@pytest.mark.java
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_each_step_is_kafkas(oracle: java_oracle.JavaOracle, case: Case) -> None:
    member = case.member
    theirs = oracle.query(
        "reconcile",
        member={
            "process": member.process_id,
            "state": member.state.name,
            "epoch": member.epoch,
            "previous": member.previous_epoch,
            "assigned": _json_held(member.assigned),
            "revoking": _json_held(member.revoking),
        },
        epoch=case.epoch,
        target=_json(case.target),
        owned=None if case.owned is None else _json(case.owned),
        owners={
            "active": _named(case.active),
            "standby": _named(case.standby_owners),
            "warmup": _named(case.warmup_owners),
        },
    )
    after = reconcile(member, case.epoch, case.target, Owners(case), case.owned)
    assert theirs == {
        "state": after.state.name,
        "epoch": after.epoch,
        "previous": after.previous_epoch,
        "assigned": _json_held(after.assigned),
        "revoking": _json_held(after.revoking),
    }


def _named(owners: dict[tuple[str, int], Any]) -> dict[str, Any]:
    return {f"{part}_{index}": found for (part, index), found in owners.items()}


def _listed(tasks: TaskSet) -> dict[str, list[int]]:
    return {part: sorted(indexes) for part, indexes in tasks.items()}


def _json(tasks: Tasks) -> dict[str, Any]:
    return {"active": _listed(tasks.active), "standby": _listed(tasks.standby), "warmup": _listed(tasks.warmup)}


def _json_held(held: HeldTasks) -> dict[str, Any]:
    return {
        "active": {
            part: {str(index): epoch for index, epoch in sorted(of.items())} for part, of in held.active.items()
        },
        "standby": _listed(held.standby),
        "warmup": _listed(held.warmup),
    }
