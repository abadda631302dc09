"""The machine as the runtime drives it: drafts, loads, its first event."""

from __future__ import annotations

from pybroker.coordinator.runtime.machine import Loaded
from pybroker.coordinator.transaction.events import ExpireTransactionalIds
from pybroker.coordinator.transaction.log import TransactionRecordCodec
from pybroker.coordinator.transaction.machine import TransactionMachine
from pybroker.coordinator.transaction.records import TransactionRecord
from tests.support.transactions import Coordinator


def test_a_dropped_draft_leaves_nothing() -> None:
    one = Coordinator()
    one.init("kept")
    before = dict(one.machine.state.transactions)
    draft = one.machine.draft()
    one.init("t")
    draft.apply(TransactionRecord("kept", None))
    assert draft.entries() == 1
    draft.drop()
    assert one.machine.state.transactions == before


def test_a_kept_draft_stands() -> None:
    one = Coordinator()
    draft = one.machine.draft()
    one.init()
    assert draft.keep().entries() == 1


def test_a_log_is_loaded_to_what_its_records_say_last() -> None:
    one = Coordinator()
    one.add(one.init("t"))
    one.init("u", fresh_id=2000)
    one.records.append(TransactionRecord("u", None))
    codec, after = TransactionRecordCodec(), TransactionMachine(one.context)
    after.load(codec.decode(codec.encode(one.records, one.now, max_batch_bytes=1 << 20)).records)
    assert after.state.transactions == {"t": one.known()}


def test_its_life_begins_with_the_timer_of_the_next_look_for_silent_ids() -> None:
    one = Coordinator(expiration_interval_ms=70)
    (timer,) = one.machine.handle(Loaded(), one.now).timers
    assert (timer.deadline_ms, timer.event) == (one.now + 70, ExpireTransactionalIds())
