"""The sticky assignor of streams groups: what holds of every result, and that it is Kafka's own, task by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group.streams.assignors.spec import StreamsGroupSpec, StreamsMemberSpec, SubtopologySpec
from pybroker.coordinator.group.streams.assignors.sticky import assign
from pybroker.coordinator.group.streams.tasks import TaskSet, task_set
from tests.support import java_oracle

NAMES = st.text("abxyz09-", min_size=1, max_size=5)


@st.composite
def groups(draw: st.DrawFn) -> StreamsGroupSpec:
    """Any group whose members have any part of the tasks, and of tasks that the topology does not have any more."""
    parts = {
        str(number): SubtopologySpec(draw(st.integers(1, 9)), draw(st.booleans()))
        for number in range(draw(st.integers(1, 4)))
    }
    tasks = [(part, index) for part, spec in parts.items() for index in range(spec.tasks)] + [("9", 0)]
    ids = draw(st.lists(NAMES, unique=True, min_size=1, max_size=12))
    processes = draw(st.lists(NAMES, unique=True, min_size=1, max_size=5))
    active: dict[str, list[tuple[str, int]]] = {member_id: [] for member_id in ids}
    for task in tasks:
        owner = draw(st.sampled_from([None, *ids]))
        if owner is not None:
            active[owner].append(task)
    members = {
        member_id: StreamsMemberSpec(
            draw(st.sampled_from(processes)),
            _task_set(active[member_id]),
            _task_set(draw(st.lists(st.sampled_from(tasks), unique=True, max_size=6))),
            _offsets(draw(st.dictionaries(st.sampled_from(tasks), st.integers(0, 5), max_size=5))),
        )
        for member_id in ids
    }
    return StreamsGroupSpec(members, parts, draw(st.integers(0, 2)))


def _task_set(tasks: list[tuple[str, int]]) -> TaskSet:
    return task_set((part, (index,)) for part, index in tasks)


def _offsets(offsets: dict[tuple[str, int], int]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for (part, index), offset in offsets.items():
        found.setdefault(part, {})[index] = offset
    return found


def _tasks(held: TaskSet) -> list[tuple[str, int]]:
    return [(part, index) for part, indexes in held.items() for index in indexes]


@given(groups())
def test_every_task_is_active_once_and_a_process_has_it_once(spec: StreamsGroupSpec) -> None:
    result = assign(spec)
    active = Counter(task for tasks in result.values() for task in _tasks(tasks.active))
    assert active == Counter((part, i) for part, one in spec.subtopologies.items() for i in range(one.tasks))
    in_process = Counter(
        (spec.members[member_id].process_id, task)
        for member_id, tasks in result.items()
        for task in (*_tasks(tasks.active), *_tasks(tasks.standby))
    )
    assert set(in_process.values()) <= {1}
    processes = {member.process_id for member in spec.members.values()}
    for part, one in spec.subtopologies.items():
        for index in range(one.tasks):
            copies = sum((part, index) in _tasks(tasks.standby) for tasks in result.values())
            assert copies == (min(spec.standby_replicas, len(processes) - 1) if one.has_state else 0)


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running_with_streams_groups("StreamsGroupOracle") as running:
        yield running


@pytest.mark.java
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=groups())
def test_the_result_is_kafkas(oracle: java_oracle.JavaOracle, spec: StreamsGroupSpec) -> None:
    theirs = oracle.query(
        "assign",
        standby_replicas=spec.standby_replicas,
        subtopologies={
            part: {"tasks": one.tasks, "has_state": one.has_state} for part, one in spec.subtopologies.items()
        },
        members=[
            {
                "id": member_id,
                "process": member.process_id,
                "active": _listed(member.active),
                "standby": _listed(member.standby),
                "offsets": member.offsets,
            }
            # Members with equal hashes have the order of their ids: Kafka's order is that of its own hash table.
            for member_id, member in sorted(spec.members.items())
        ],
    )
    ours = {
        member_id: {"active": _listed(tasks.active), "standby": _listed(tasks.standby)}
        for member_id, tasks in assign(spec).items()
    }
    assert ours == theirs


def _listed(tasks: TaskSet) -> dict[str, Any]:
    return {part: sorted(indexes) for part, indexes in tasks.items()}
