"""The states of a member's reconciliation."""

from __future__ import annotations

import pytest

from pybroker.coordinator.group.modern.member import RECONCILIATION, MemberState, Step


@pytest.mark.parametrize("state", MemberState)
@pytest.mark.parametrize("step", Step)
def test_any_state_follows_the_next_finding(state: MemberState, step: Step) -> None:
    following = {
        Step.REVOKE: MemberState.UNREVOKED_PARTITIONS,
        Step.WAIT: MemberState.UNRELEASED_PARTITIONS,
        Step.COMPLETE: MemberState.STABLE,
    }
    assert RECONCILIATION.following(state, step) is following[step]


def test_only_the_state_of_a_newer_broker_is_never_come_to() -> None:
    assert RECONCILIATION.unreachable() == [MemberState.UNKNOWN]
