"""The life of a shard: every pair of state and step."""

from __future__ import annotations

import itertools

import pytest

from pybroker.coordinator.runtime.shard import SHARD_LIFE, TRANSITIONS, ShardState, ShardStep
from pybroker.machine.transitions import TransitionError


def test_what_the_table_does_not_list_raises() -> None:
    for state, step in itertools.product(ShardState, ShardStep):
        if (state, step) in TRANSITIONS:
            assert SHARD_LIFE.following(state, step) is TRANSITIONS[state, step]
        else:
            with pytest.raises(TransitionError):
                SHARD_LIFE.following(state, step)
    assert SHARD_LIFE.unreachable() == []


def test_a_shard_that_has_resigned_comes_back_only_as_another() -> None:
    assert [step for step in ShardStep if (ShardState.CLOSED, step) in TRANSITIONS] == []
