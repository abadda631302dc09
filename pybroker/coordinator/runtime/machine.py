"""The interface of a kind's machine, in addition to `handle` and `apply`.

Owns only this type, and the first event of every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from pybroker.machine.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterable

Record = TypeVar("Record")


class Loaded(msgspec.Struct, frozen=True):
    """The partition's log is replayed: the first event of a machine. The reply is None."""


class ShardMachine(Machine[Any, Record], Protocol[Record]):
    """The machine of one shard. It handles `Loaded` before every other event."""

    def load(self, records: Iterable[tuple[Any, Any]]) -> None:
        """Apply records as read from the log: keys and values, None for a tombstone."""

    def entries(self) -> int:
        """Return the number of entries of the machine: groups, transactions."""
