"""The table of what may follow what."""

from __future__ import annotations

from pybroker.coordinator.transaction.states import (
    LOGGED,
    NUMBERS,
    TRANSACTION_LIFE,
    TransactionState,
    TransactionStep,
)


def test_every_state_can_be_reached_and_all_but_dead_left() -> None:
    assert TRANSACTION_LIFE.unreachable() == []
    left = {state for state, _ in TRANSACTION_LIFE.table}
    assert set(TransactionState) - left == {TransactionState.DEAD}


def test_the_numbers_in_the_log_are_kafkas() -> None:
    assert {state.value: number for state, number in NUMBERS.items()} == {
        "Empty": 0,
        "Ongoing": 1,
        "PrepareCommit": 2,
        "PrepareAbort": 3,
        "CompleteCommit": 4,
        "CompleteAbort": 5,
        "Dead": 6,
        "PrepareEpochFence": 7,
    }


def test_a_prepared_transaction_ends_as_it_was_prepared_and_no_other_way() -> None:
    for prepared, complete in (
        (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
        (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
    ):
        assert {step: after for (state, step), after in TRANSACTION_LIFE.table.items() if state is prepared} == {
            TransactionStep.COMPLETE: complete
        }


def test_no_record_says_what_no_transaction_rests_in() -> None:
    assert set(TransactionState) - LOGGED == {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
