from __future__ import annotations

import itertools

import pytest

from pybroker.replica.broker_state import TRANSITIONS, BrokerState, ForbiddenTransition, next_state


@pytest.mark.parametrize(("before", "after"), list(itertools.product(BrokerState, BrokerState)))
def test_only_what_the_table_lists_may_follow(before: BrokerState, after: BrokerState) -> None:
    if after in TRANSITIONS[before]:
        assert next_state(before, after) is after
    else:
        with pytest.raises(ForbiddenTransition, match=f"from {before.name} to {after.name}"):
            next_state(before, after)


def test_every_state_leads_to_the_end() -> None:
    for state in BrokerState:
        reached, todo = set(), [state]
        while todo:
            here = todo.pop()
            if here not in reached:
                reached.add(here)
                todo.extend(TRANSITIONS[here])
        assert BrokerState.NOT_RUNNING in reached
