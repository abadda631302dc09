"""An open transaction that one producer has suspended for another, which ends it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SuspendedTransaction:
    """The data for committing or aborting a transaction in place of the producer that has written it."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_implicit: bool
    """Whether a Produce has added its partitions (`transaction.version` 2)."""
    is_known: bool
    """Whether anything was written. An empty transaction is not ended at the coordinator."""
