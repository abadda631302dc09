"""An open transaction on its way from one producer to another, which ends it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SuspendedTransaction:
    """What it takes to commit or abort a transaction in the place of the producer that has written it."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_implicit: bool
    """Whether a Produce has added its partitions (`transaction.version` 2)."""
    is_known: bool
    """Whether anything was written: one of nothing is not ended at the coordinator."""
