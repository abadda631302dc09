"""A persistent store does what a store in memory does, through commits, restarts and crashes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.persistent_stores import BUILDERS, Clock, Operation, contents, crash, opened, random_operation


@pytest.mark.parametrize("kind", BUILDERS)
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_operations_equal_those_in_memory(kind: str, seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    clock = Clock(dice)
    directory = tmp_path / str(seed)
    memory, logged = opened(BUILDERS[kind], None)
    store, context = opened(BUILDERS[kind], directory)
    assert store.persistent
    assert not memory.persistent
    for number in range(250):
        operation = random_operation(kind, dice, clock)
        assert operation(store) == operation(memory)
        step = dice.random()
        if step < 0.05:
            store.commit(number)
            assert store.committed_offset == number
            assert store.uncommitted_bytes == 0
        if step < 0.02:
            records = context.logged
            store.close()
            store, context = opened(BUILDERS[kind], directory)
            context.logged = records
            assert store.committed_offset == number
    assert contents(kind, store) == contents(kind, memory)
    assert context.logged == logged.logged
    store.close()


@pytest.mark.parametrize("kind", BUILDERS)
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_crash_leaves_the_last_commit_and_its_offset(kind: str, seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    clock = Clock(dice)
    directory = tmp_path / str(seed)
    committed: list[Operation] = []
    pending: list[Operation] = []
    store, _ = opened(BUILDERS[kind], directory)
    offset = None
    for number in range(150):
        pending.append(random_operation(kind, dice, clock))
        pending[-1](store)
        if dice.random() < 0.05:
            store.commit(number)
            committed += pending
            pending, offset = [], number
        if dice.random() < 0.03:
            crash(store)
            store, _ = opened(BUILDERS[kind], directory)
            pending = []
            memory, _ = opened(BUILDERS[kind], None)
            for operation in committed:
                operation(memory)
            assert contents(kind, store) == contents(kind, memory)
            assert store.committed_offset == offset
    store.close()
