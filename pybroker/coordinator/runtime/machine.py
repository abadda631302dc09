"""What the runtime asks of a kind's machine beside `handle` and `apply`.

Owns the shape alone, and the event with which the life of every machine begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from pybroker.machine.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterable

Record = TypeVar("Record")


class Loaded(msgspec.Struct, frozen=True):
    """The partition's log is replayed: the first event of a machine. Answered by None."""


class ShardMachine(Machine[Any, Record], Protocol[Record]):
    """The machine of one shard. It handles `Loaded` before every other event."""

    def load(self, records: Iterable[tuple[Any, Any]]) -> None:
        """Apply records as they were read from the log: keys and values, None for a tombstone."""

    def entries(self) -> int:
        """Count what the machine keeps: groups, transactions."""
