"""The transaction machine, its settings and its records, for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.transaction.events import (
    AddPartitions,
    CompleteTransaction,
    EndTransaction,
    InitProducerId,
    ProducerIdentity,
)
from pybroker.coordinator.transaction.machine import TransactionMachine
from pybroker.coordinator.transaction.metadata import TransactionMetadata
from pybroker.coordinator.transaction.settings import TransactionSettings, build_settings
from pybroker.coordinator.transaction.state import TransactionContext

FRESH = 1000
NOW = 1_000_000


def transaction_settings(**changes: Any) -> TransactionSettings:
    """Return the broker's default settings with changes."""
    return msgspec.structs.replace(build_settings(BrokerConfig({})), **changes)


class Coordinator:
    """A transaction machine that applies its records at once, with a time that the test sets."""

    def __init__(self, version: int = 2, **settings: Any) -> None:
        self.context = TransactionContext(transaction_settings(**settings), version)
        self.machine = TransactionMachine(self.context)
        self.now = NOW
        self.records: list[Any] = []

    def query(self, event: Any) -> Any:
        """Handle an event and return the reply. Raises the errors of the machine."""
        outcome = self.machine.handle(event, self.now)
        for record in outcome.records:
            self.machine.apply(record)
        self.records += outcome.records
        return outcome.reply

    def init(
        self,
        transactional_id: str = "t",
        *,
        had: tuple[int, int] | None = None,
        fresh_id: int | None = FRESH,
        timeout_ms: int = 60_000,
    ) -> ProducerIdentity:
        """Initialize a producer. `had` is its current producer id and epoch."""
        expected = None if had is None else ProducerIdentity(*had)
        reply: ProducerIdentity = self.query(InitProducerId(transactional_id, timeout_ms, expected, fresh_id))
        return reply

    def add(self, identity: tuple[int, int], *partitions: int, version: int = 2) -> None:
        """Add partitions of the topic `a` to the transaction."""
        added = frozenset(("a", index) for index in partitions or (0,))
        self.query(AddPartitions("t", ProducerIdentity(*identity), added, version))

    def end(
        self, identity: tuple[int, int], *, commit: bool = True, version: int = 2, fresh_id: int | None = None
    ) -> ProducerIdentity:
        """End the transaction."""
        reply: ProducerIdentity = self.query(
            EndTransaction("t", ProducerIdentity(*identity), commit, version, fresh_id)
        )
        return reply

    def complete(self) -> None:
        """Complete the transaction, as after all markers are written."""
        known = self.known()
        self.query(CompleteTransaction("t", ProducerIdentity(known.producer_id, known.producer_epoch)))

    def known(self, transactional_id: str = "t") -> TransactionMetadata:
        """Return the machine's metadata of a transactional id."""
        return self.machine.state.transactions[transactional_id]

    def put(self, **changes: Any) -> None:
        """Change the machine's metadata of `t` directly, without an event."""
        known = self.machine.state.transactions.get("t") or TransactionMetadata(
            producer_id=FRESH, timeout_ms=60_000, updated_ms=self.now
        )
        self.machine.state.put("t", msgspec.structs.replace(known, **changes))
