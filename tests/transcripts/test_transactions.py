"""The transaction machine's transcripts: `transactions_*.txt`.

Commands: `init ID [timeout=MS] [as=PRODUCER/EPOCH]`, `add ID PRODUCER/EPOCH TOPIC/PARTITION ... [v=LEVEL]`, `verify ID
PRODUCER/EPOCH TOPIC/PARTITION ...`, `commit ID PRODUCER/EPOCH [v=LEVEL]`, `abort ID PRODUCER/EPOCH [v=LEVEL]`,
`markers` (those of every prepared transaction, written to all partitions but that of `without=TOPIC/PARTITION`),
`complete ID PRODUCER/EPOCH`, `sweep` (a look for transactions that were open for too long), `wait MS` (timers ring
meanwhile), `describe ID`, `list [state=S]`, `level N` (of transaction.version),
`exhaust ID` (its producer has the last epoch), `restart` (another coordinator reads
what was written down), `crash` (what the last command wrote is not committed: it is undone, and its reply lost).

A producer id is fresh where the coordinator needs one: p0, p1 ... Requests are of versions for transaction.version 2
unless `v=` says otherwise.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.coordinator.runtime.machine import Loaded
from pybroker.coordinator.transaction import events
from pybroker.coordinator.transaction.admin import TransactionFilter
from pybroker.coordinator.transaction.errors import ProducerIdNeededError
from pybroker.coordinator.transaction.events import ProducerIdentity
from pybroker.coordinator.transaction.machine import TransactionMachine
from pybroker.coordinator.transaction.metadata import EXHAUSTED_EPOCH, TransactionMetadata
from pybroker.coordinator.transaction.records import TransactionRecord, build_value
from pybroker.coordinator.transaction.settings import TransactionSettings
from pybroker.coordinator.transaction.state import TransactionContext
from pybroker.machine.machine import Timer
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.transaction_records.transaction_log import TransactionLogKey
from tests.transcripts.transcript import check_transcript

HERE = Path(__file__).parent
SETTINGS = TransactionSettings(
    max_timeout_ms=900_000, id_expiration_ms=100_000, abort_interval_ms=10_000, expiration_interval_ms=50_000
)


class Stage:
    """A machine, a clock, its timers, what was written down, and the text of what it answers."""

    def __init__(self) -> None:
        self.context = TransactionContext(SETTINGS, 2)
        self.machine = TransactionMachine(self.context)
        self.written: list[TransactionRecord] = []
        # How much was written before the last command.
        self.before = 0
        self.timers: dict[Any, Timer] = {}
        self.now = 0
        self.ids = itertools.count()

    def report(self, command: str) -> str:
        name, *words = shlex.split(command)
        values = dict(word.split("=", 1) for word in words if "=" in word)
        bare = [word for word in words if "=" not in word]
        if name != "crash":
            self.before = len(self.written)
        return "\n".join(getattr(self, f"do_{name}")(bare, values))

    def step(self, event: Any) -> Iterator[str]:
        try:
            try:
                outcome = self.machine.handle(event, self.now)
            except ProducerIdNeededError:
                outcome = self.machine.handle(msgspec.structs.replace(event, fresh_id=next(self.ids)), self.now)
        except CoordinatorError as error:
            yield f"{error.code.name}{f': {error}' if str(error) else ''}"
            return
        for record in outcome.records:
            self.machine.apply(record)
            self.written.append(record)
        if isinstance(outcome.reply, ProducerIdentity):
            yield show_identity(outcome.reply)
        elif isinstance(outcome.reply, TransactionMetadata):
            yield show(outcome.reply)
        elif isinstance(outcome.reply, dict):
            yield " ".join(
                f"{topic}/{index}:{ErrorCode(code).name}" for (topic, index), code in sorted(outcome.reply.items())
            )
        elif isinstance(outcome.reply, events.TimedOut):
            yield f"aborted: {' '.join(outcome.reply.aborted) or '-'}"
        elif isinstance(event, events.InitProducerId):
            yield "(a transaction is to be aborted first: ask again)"
        elif not isinstance(event, Loaded | events.ExpireTransactionalIds | events.CompleteTransaction):
            yield "ok"
        for record in outcome.records:
            yield f"+ {record.transactional_id}: {'tombstone' if record.metadata is None else show(record.metadata)}"
        for timer in outcome.timers:
            self.timers[timer.key] = timer

    # ------------------------------------------------------------------------------------------------------ requests

    def do_init(self, bare: list[str], values: dict[str, str]) -> Iterator[str]:
        expected = identity_of(values["as"]) if "as" in values else None
        yield from self.step(events.InitProducerId(bare[0], int(values.get("timeout", 60_000)), expected))

    def do_add(self, bare: list[str], values: dict[str, str]) -> Iterator[str]:
        level = int(values.get("v", 2))
        yield from self.step(events.AddPartitions(bare[0], identity_of(bare[1]), partitions_of(bare[2:]), level))

    def do_verify(self, bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        yield from self.step(events.VerifyPartitions(bare[0], identity_of(bare[1]), partitions_of(bare[2:])))

    def do_commit(self, bare: list[str], values: dict[str, str], *, commit: bool = True) -> Iterator[str]:
        level = int(values.get("v", 2))
        yield from self.step(events.EndTransaction(bare[0], identity_of(bare[1]), commit, level))

    def do_abort(self, bare: list[str], values: dict[str, str]) -> Iterator[str]:
        yield from self.do_commit(bare, values, commit=False)

    def do_complete(self, bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        lines = list(self.step(events.CompleteTransaction(bare[0], identity_of(bare[1]))))
        yield from lines or ["(it is over, or another)"]

    def do_sweep(self, _bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        found: Any = self.machine.handle(events.AbortTimedOut(), self.now).reply
        yield from self.step(events.AbortTimedOut(tuple((one, next(self.ids)) for one in found.need_ids)))

    def do_describe(self, bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        yield from self.step(events.DescribeTransaction(bare[0]))

    def do_list(self, _bare: list[str], values: dict[str, str]) -> Iterator[str]:
        states = [values["state"]] if "state" in values else None
        requested = TransactionFilter(states=states)
        reply: Any = self.machine.handle(events.ListTransactions(), self.now).reply
        listed, now = reply
        found = [(name, known) for name, known in listed if requested.lets_through(name, known, now)]
        yield from [f"{name}: {known.state.value}" for name, known in found] or ["none"]

    # -------------------------------------------------------------------------------------------------- what happens

    def do_markers(self, _bare: list[str], values: dict[str, str]) -> Iterator[str]:
        without = partitions_of([values["without"]]) if "without" in values else frozenset()
        due = {one: known for one, known in self.machine.state.transactions.items() if known.is_prepared}
        if not due:
            yield "none are due"
        for transactional_id, known in due.items():
            kind, identity = (
                "commit" if known.commits else "abort",
                ProducerIdentity(known.producer_id, known.producer_epoch),
            )
            for topic, index in sorted(known.partitions - without):
                yield f"{kind} {show_identity(identity)} to {topic}/{index}"
            if not known.partitions & without:
                yield from self.step(events.CompleteTransaction(transactional_id, identity))

    def do_wait(self, bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        until = self.now + int(bare[0])
        while due := [timer for timer in self.timers.values() if (timer.deadline_ms or 0) <= until]:
            timer = min(due, key=lambda timer: timer.deadline_ms or 0)
            del self.timers[timer.key]
            self.now = timer.deadline_ms or 0
            yield from self.step(timer.event)
        self.now = until
        yield f"it is {self.now}"

    def do_exhaust(self, bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        """As `init`, and what 32,766 more of them would make of it."""
        lines = list(self.step(events.InitProducerId(bare[0], 60_000)))
        known = self.machine.state.transactions[bare[0]]
        record = TransactionRecord(bare[0], msgspec.structs.replace(known, producer_epoch=EXHAUSTED_EPOCH))
        self.machine.apply(record)
        self.written.append(record)
        yield f"{lines[0].split('/')[0]}/{EXHAUSTED_EPOCH}"

    def do_level(self, bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        self.context.version = int(bare[0])
        yield f"transaction.version {bare[0]}"

    def do_restart(self, _bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        self.machine, self.timers = TransactionMachine(self.context), {}
        self.machine.load(
            (
                TransactionLogKey(transactional_id=record.transactional_id),
                None if record.metadata is None else build_value(record.metadata, record.version),
            )
            for record in self.written
        )
        yield f"{len(self.written)} records"
        yield from self.step(Loaded())

    def do_crash(self, _bare: list[str], _values: dict[str, str]) -> Iterator[str]:
        del self.written[self.before :]
        yield from self.do_restart([], {})


def identity_of(text: str) -> ProducerIdentity:
    producer, _, epoch = text.partition("/")
    return ProducerIdentity(int(producer.removeprefix("p")), int(epoch))


def partitions_of(words: list[str]) -> frozenset[tuple[str, int]]:
    pairs = [word.partition("/") for word in words]
    return frozenset((topic, int(index)) for topic, _, index in pairs)


def show_identity(identity: ProducerIdentity) -> str:
    return "ok" if identity.producer_id < 0 else f"p{identity.producer_id}/{identity.producer_epoch}"


def show(found: TransactionMetadata) -> str:
    """A value by what is not at its default."""
    words = [found.state.value, show_identity(ProducerIdentity(found.producer_id, found.producer_epoch))]
    if found.last_producer_epoch >= 0:
        words.append(f"after {found.last_producer_epoch}")
    if found.next_producer_id >= 0:
        words.append(f"next p{found.next_producer_id}")
    words += [f"{topic}/{index}" for topic, index in sorted(found.partitions)]
    if found.started_ms >= 0:
        words.append(f"since {found.started_ms}")
    return " ".join(words)


@pytest.mark.parametrize("path", sorted(HERE.glob("transactions_*.txt")), ids=lambda path: path.stem)
def test_the_transaction_machine_answers_as_written(path: Path, request: pytest.FixtureRequest) -> None:
    check_transcript(path, Stage().report, rewrite=request.config.getoption("--rewrite"))
