"""Whatever happens to transactional ids, and wherever the coordinator is killed: records rebuild them, fences hold."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker.coordinator.transaction.errors import ProducerIdNeededError, TransactionError
from pybroker.coordinator.transaction.events import (
    AbortTimedOut,
    AddPartitions,
    CompleteTransaction,
    EndTransaction,
    ExpireTransactionalIds,
    InitProducerId,
    ProducerIdentity,
    TimedOut,
)
from pybroker.coordinator.transaction.log import TransactionRecordCodec
from pybroker.coordinator.transaction.machine import TransactionMachine
from pybroker.coordinator.transaction.metadata import EXHAUSTED_EPOCH, MAX_EPOCH, TransactionMetadata
from pybroker.coordinator.transaction.records import TransactionRecord
from pybroker.coordinator.transaction.state import TransactionContext
from pybroker.coordinator.transaction.states import TransactionState
from tests.support.transactions import transaction_settings

CODEC = TransactionRecordCodec()
IDS = ("t", "u")
NOBODY = ProducerIdentity(3, 3)
STEPS = ["init", "resume", "add", "add", "commit", "commit", "abort", "markers", "markers", "overdue", "expire", "kill"]
ENDS = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}

steps = st.lists(
    st.tuples(st.sampled_from(STEPS), st.sampled_from(IDS), st.integers(0, 5), st.integers(0, 1 << 16)), max_size=60
)


class History:
    """A machine that was driven at random, all that it wrote down, and all that it gave out."""

    def __init__(self, level: int, first_epoch: int) -> None:
        self.context = TransactionContext(transaction_settings(max_timeout_ms=10_000, id_expiration_ms=200_000), level)
        self.machine = TransactionMachine(self.context)
        self.records: list[TransactionRecord] = []
        self.given: dict[str, list[ProducerIdentity]] = {one: [] for one in IDS}
        self.now = 1
        self.next_id = 100
        if first_epoch:
            for one in IDS:
                metadata = TransactionMetadata(
                    producer_id=self._fresh(), producer_epoch=first_epoch, timeout_ms=5000, updated_ms=self.now
                )
                self._apply(TransactionRecord(one, metadata))

    def step(self, name: str, one: str, which: int, number: int) -> None:
        self.now += number % 3_000
        version = 2 if self.context.version == 2 and which % 2 else 0
        held = self.given[one]
        had = held[-1 - which % len(held)] if held else NOBODY
        if name == "kill":
            self.machine = self.loaded()
        elif name == "init":
            self._begin(InitProducerId(one, 5000))
        elif name == "resume":
            self._begin(InitProducerId(one, 5000, had))
        elif name == "add":
            self.query(AddPartitions(one, had, frozenset({("a", which)}), version))
        elif name in ("commit", "abort"):
            after = self.query(EndTransaction(one, had, name == "commit", version))
            if after is not None and after.producer_id >= 0:
                self.given[one].append(after)
        elif name == "markers":
            known = self.machine.state.transactions.get(one)
            if known is not None:
                self.query(CompleteTransaction(one, ProducerIdentity(known.producer_id, known.producer_epoch)))
        elif name == "overdue":
            found: TimedOut = self.query(AbortTimedOut())
            self.query(AbortTimedOut(tuple((each, self._fresh()) for each in found.need_ids)))
        else:
            self.query(ExpireTransactionalIds())

    def query(self, event: Any) -> Any:
        """Return the reply, None for a refusal; a refused decision changes nothing, nor does one that is dropped."""
        before = dict(self.machine.state.transactions)
        try:
            outcome = self.machine.handle(event, self.now)
        except ProducerIdNeededError:
            return self.query(msgspec.structs.replace(event, fresh_id=self._fresh()))
        except TransactionError:
            assert self.machine.state.transactions == before
            return None
        assert self.machine.state.transactions == before
        draft = self.machine.draft()
        for record in outcome.records:
            draft.apply(record)
        draft.drop()
        assert self.machine.state.transactions == before
        for record in outcome.records:
            self._apply(record)
        return outcome.reply

    def loaded(self) -> TransactionMachine:
        """A coordinator that has read the log."""
        machine = TransactionMachine(self.context)
        machine.load(CODEC.decode(CODEC.encode(self.records, self.now, max_batch_bytes=1 << 20)).records)
        return machine

    def _begin(self, event: InitProducerId) -> None:
        given = self.query(event)
        if given is None:
            return
        assert 0 <= given.producer_epoch <= EXHAUSTED_EPOCH
        if event.expected is None:
            assert all(given not in of_one for of_one in self.given.values()), "one identity was given to two"
        self.given[event.transactional_id].append(given)

    def _apply(self, record: TransactionRecord) -> None:
        """Apply a record, of which no one may follow the one before that does not."""
        before = self.machine.state.transactions.get(record.transactional_id)
        after = record.metadata
        if before is not None and before.state in ENDS:
            assert after is not None
            assert after.state is ENDS[before.state], "a decided end has changed"
            assert before.producer_epoch == after.producer_epoch or after.producer_id == before.next_producer_id
        if before is not None and after is not None and before.producer_id == after.producer_id:
            assert before.producer_epoch <= after.producer_epoch <= MAX_EPOCH
        self.machine.apply(record)
        self.records.append(record)

    def _fresh(self) -> int:
        self.next_id += 1
        return self.next_id


def _written(transactions: dict[str, TransactionMetadata], level: int) -> dict[str, TransactionMetadata]:
    """What the log keeps: not the epoch before, and below level 1 no other producer ids."""
    less: dict[str, Any] = {"last_producer_epoch": -1}
    if level == 0:
        less |= {"previous_producer_id": -1, "next_producer_id": -1, "client_version": 0}
    return {one: msgspec.structs.replace(known, **less) for one, known in transactions.items()}


@settings(max_examples=250, deadline=None)
@given(steps, st.sampled_from([0, 1, 2]), st.sampled_from([0, 0, EXHAUSTED_EPOCH - 2]))
def test_a_history_is_rebuilt_by_its_records_at_every_step(
    history: list[tuple[str, str, int, int]], level: int, first_epoch: int
) -> None:
    driven = History(level, first_epoch)
    for step in history:
        driven.step(*step)
        known = driven.machine.state.transactions
        for one in known.values():
            assert one.state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
            assert not one.partitions or one.state not in (TransactionState.EMPTY, *ENDS.values())
        assert _written(driven.loaded().state.transactions, level) == _written(known, level)


@settings(max_examples=100, deadline=None)
@given(steps, st.sampled_from([0, 1, 2]))
def test_no_transaction_stays_open_for_ever(history: list[tuple[str, str, int, int]], level: int) -> None:
    driven = History(level, 0)
    for step in history:
        driven.step(*step)
    driven.now += 20_000
    driven.step("overdue", "t", 0, 0)
    for one in IDS:
        driven.step("markers", one, 0, 0)
    assert all(
        known.state in (TransactionState.EMPTY, *ENDS.values()) for known in driven.machine.state.transactions.values()
    )
