"""Overlapping transactions in the log of a scripted broker."""

from __future__ import annotations

from tests.support.batches import TRANSACTIONAL, Batch, Record, end_marker
from tests.support.scripted_broker import ScriptedBroker


def of_transaction(value: bytes, producer_id: int, offset: int) -> bytes:
    return Batch((Record(value),), base_offset=offset, attributes=TRANSACTIONAL, producer_id=producer_id).encode()


def overlapping(broker: ScriptedBroker) -> None:
    """Append two overlapping aborted transactions, whose later one aborts first, and a committed one."""
    broker.hold(0, 1, of_transaction(b"a", 1, 0))
    broker.hold(1, 1, of_transaction(b"b", 2, 1))
    broker.hold(2, 1, of_transaction(b"c", 3, 2))
    broker.hold(3, 1, end_marker(2, 0, 0, commit=False, base_offset=3))
    broker.hold(4, 1, end_marker(1, 0, 0, commit=False, base_offset=4))
    broker.hold(5, 1, end_marker(3, 0, 0, commit=True, base_offset=5))
    broker.aborted = [(2, 1), (1, 0)]
