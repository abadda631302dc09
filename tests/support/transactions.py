"""The transaction machine, its settings and its log, as tests want them."""

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
    """The broker's defaults, with some changed."""
    return msgspec.structs.replace(build_settings(BrokerConfig({})), **changes)


class Coordinator:
    """A machine, whose decisions are applied at once, at a time that the test sets."""

    def __init__(self, version: int = 2, **settings: Any) -> None:
        self.context = TransactionContext(transaction_settings(**settings), version)
        self.machine = TransactionMachine(self.context)
        self.now = NOW
        self.records: list[Any] = []

    def ask(self, event: Any) -> Any:
        """Return the reply to an event; raises what the decision raises."""
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
        """Begin a producer, which has `had`."""
        expected = None if had is None else ProducerIdentity(*had)
        reply: ProducerIdentity = self.ask(InitProducerId(transactional_id, timeout_ms, expected, fresh_id))
        return reply

    def add(self, identity: tuple[int, int], *partitions: int, version: int = 2) -> None:
        """Add partitions of the topic `a`."""
        added = frozenset(("a", index) for index in partitions or (0,))
        self.ask(AddPartitions("t", ProducerIdentity(*identity), added, version))

    def end(
        self, identity: tuple[int, int], *, commit: bool = True, version: int = 2, fresh_id: int | None = None
    ) -> ProducerIdentity:
        """End the transaction."""
        reply: ProducerIdentity = self.ask(EndTransaction("t", ProducerIdentity(*identity), commit, version, fresh_id))
        return reply

    def complete(self) -> None:
        """Have all markers written."""
        known = self.known()
        self.ask(CompleteTransaction("t", ProducerIdentity(known.producer_id, known.producer_epoch)))

    def known(self, transactional_id: str = "t") -> TransactionMetadata:
        """Return what the machine knows of a transactional id."""
        return self.machine.state.transactions[transactional_id]

    def put(self, **changes: Any) -> None:
        """Change what the machine knows of `t`, past every decision."""
        known = self.machine.state.transactions.get("t") or TransactionMetadata(
            producer_id=FRESH, timeout_ms=60_000, updated_ms=self.now
        )
        self.machine.state.put("t", msgspec.structs.replace(known, **changes))
