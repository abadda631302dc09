"""The states of transactional ids and of classic groups, and what may follow what, against Kafka's own tables."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group.classic.transitions import CLASSIC_LIFE
from pybroker.coordinator.transaction.states import NUMBERS, TRANSACTION_LIFE, TransactionStep
from tests.support import java_oracle

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def kafkas() -> dict[str, Any]:
    with java_oracle.running("StateOracle") as oracle:
        return oracle.query("states")


def test_states_of_transactional_ids_have_kafkas_numbers(kafkas: dict[str, Any]) -> None:
    theirs = {name: one["number"] for name, one in kafkas["transactions"].items()}
    assert {state.value: number for state, number in NUMBERS.items()} == theirs


def test_a_transactional_id_changes_its_state_only_as_in_kafka(kafkas: dict[str, Any]) -> None:
    theirs = {(before, after) for after, one in kafkas["transactions"].items() for before in one["previous"]}
    ours = {(before.value, after.value) for (before, _), after in TRANSACTION_LIFE.table.items()}
    assert ours == theirs


def test_a_transactional_id_expires_only_where_kafka_lets_it(kafkas: dict[str, Any]) -> None:
    theirs = {name for name, one in kafkas["transactions"].items() if one["expires"]}
    assert {s.value for s, step in TRANSACTION_LIFE.table if step is TransactionStep.EXPIRE} == theirs


def test_a_classic_group_changes_its_state_only_as_in_kafka(kafkas: dict[str, Any]) -> None:
    theirs = {(before, after) for after, previous in kafkas["groups"].items() for before in previous}
    ours = {(before.value, after.value) for (before, _), after in CLASSIC_LIFE.table.items()}
    assert ours == theirs - {("Dead", "Dead")}, "a dead group dies once"
