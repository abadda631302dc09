"""One transactional id through its steps: epochs, producer ids, partitions and times."""

from __future__ import annotations

import msgspec
import pytest

from pybroker.coordinator.transaction.metadata import MAX_EPOCH, TransactionMetadata
from pybroker.coordinator.transaction.states import TransactionState
from pybroker.machine.transitions import TransitionError

NEW = TransactionMetadata(producer_id=7, timeout_ms=1000, updated_ms=10)


def with_epoch(epoch: int, last: int = -1, state: TransactionState = TransactionState.EMPTY) -> TransactionMetadata:
    return msgspec.structs.replace(NEW, producer_epoch=epoch, last_producer_epoch=last, state=state)


def test_a_new_producer_begins_with_epoch_0_whatever_it_had() -> None:
    for expected in (None, 5):
        bumped = NEW.bump(1000, expected, 11)
        assert bumped is not None
        assert (bumped.producer_epoch, bumped.last_producer_epoch, bumped.updated_ms) == (0, -1, 11)


@pytest.mark.parametrize(
    ("expected", "epoch", "last"),
    [
        (None, 6, -1),
        (5, 6, 5),
        (4, 5, 4),  # repeats what was answered
    ],
)
def test_a_producer_gets_the_next_epoch(expected: int | None, epoch: int, last: int) -> None:
    bumped = with_epoch(5, 4).bump(2000, expected, 11)
    assert bumped is not None
    assert (bumped.producer_epoch, bumped.last_producer_epoch, bumped.timeout_ms) == (epoch, last, 2000)


def test_another_epoch_is_fenced() -> None:
    assert with_epoch(5, 4).bump(1000, 3, 11) is None
    assert with_epoch(5, 4).bump(1000, 6, 11) is None


def test_partitions_gather_and_the_time_of_the_first_stays() -> None:
    first = with_epoch(0).add([("a", 0)], 2, 20)
    second = first.add([("b", 1), ("a", 0)], 2, 30)
    assert second.partitions == {("a", 0), ("b", 1)}
    assert (second.started_ms, second.updated_ms, second.state) == (20, 30, TransactionState.ONGOING)


def test_an_end_of_transaction_version_2_raises_the_epoch_and_one_before_does_not() -> None:
    ongoing = with_epoch(3).add([("a", 0)], 2, 20)
    raised = ongoing.prepare(commit=True, client_version=2, now=30)
    assert (raised.producer_epoch, raised.last_producer_epoch, raised.started_ms) == (4, 3, 20)
    kept = ongoing.prepare(commit=False, client_version=0, now=30)
    assert (kept.producer_epoch, kept.last_producer_epoch) == (3, -1)
    assert (raised.state, kept.state) == (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def test_an_abort_without_a_transaction_begins_when_it_ends() -> None:
    assert with_epoch(3).prepare(commit=False, client_version=2, now=30).started_ms == 30
    with pytest.raises(TransitionError):
        with_epoch(3).prepare(commit=True, client_version=2, now=30)


@pytest.mark.parametrize(("version", "last"), [(0, -1), (1, -1), (2, 3)])
def test_a_fenced_producer_does_not_have_the_epoch_of_the_abort(version: int, last: int) -> None:
    fenced = with_epoch(3).add([("a", 0)], version, 20).fence(version, 30)
    assert (fenced.producer_epoch, fenced.last_producer_epoch) == (4, last)
    assert (fenced.state, fenced.started_ms) == (TransactionState.PREPARE_ABORT, 20)
    assert fenced.client_version == (2 if version == 2 else 0)


def test_no_epoch_is_above_the_largest() -> None:
    ongoing = with_epoch(MAX_EPOCH).add([("a", 0)], 2, 20)
    assert ongoing.fence(2, 30).producer_epoch == MAX_EPOCH
    assert ongoing.fence(0, 30).producer_epoch == MAX_EPOCH


def test_a_completion_forgets_the_partitions_and_keeps_the_producer() -> None:
    prepared = with_epoch(3).add([("a", 0)], 2, 20).prepare(commit=True, client_version=2, now=30)
    complete = prepared.complete(40)
    assert (complete.producer_id, complete.producer_epoch, complete.last_producer_epoch) == (7, 4, 3)
    assert (complete.partitions, complete.updated_ms) == (frozenset(), 40)


def test_a_completion_gives_the_new_producer_id_where_the_epochs_are_used_up() -> None:
    ongoing = with_epoch(MAX_EPOCH - 1).add([("a", 0)], 2, 20)
    prepared = ongoing.prepare(commit=True, client_version=2, now=30, next_producer_id=8)
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (7, MAX_EPOCH, 8)
    complete = prepared.complete(40)
    assert (complete.producer_id, complete.producer_epoch) == (8, 0)
    assert (complete.previous_producer_id, complete.next_producer_id) == (7, -1)
    assert complete.last_producer_epoch == MAX_EPOCH - 1
