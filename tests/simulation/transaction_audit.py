"""What holds of transactions in a simulated cluster: who wrote what in which transaction, and what readers were given.

Owns what clients were answered, and the claims: all or nothing in every partition, nothing of an open or aborted
transaction, nothing of a zombie after its fencing, no record twice; a group's offset is that of the last transaction
that has committed one. What an unclean election may have lost is left out. Must not know why anything happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tests.simulation.whole_invariants import BrokenError
from tests.support.batches import CONTROL, TRANSACTIONAL, ReadBatch


class Fate(Enum):
    """What is known of a transaction's end."""

    OPEN = "open"
    COMMITTING = "to be committed"
    COMMITTED = "committed"
    ABORTED = "aborted"
    FENCED = "of a producer that was fenced"


@dataclass
class Transaction:
    """A transaction of one producer."""

    name: str
    fate: Fate = Fate.OPEN
    values: dict[bytes, str] = field(default_factory=dict)
    """What was acknowledged, and in which topic."""
    group: str = ""
    offset: int = -1
    """What it has committed for a group, where that was answered."""


class Audit:
    """See the module."""

    def __init__(self) -> None:
        self._by_value: dict[bytes, Transaction] = {}
        self._all: list[Transaction] = []
        self._seen: dict[str, dict[bytes, int]] = {}
        self._offsets: dict[tuple[str, int], Transaction] = {}
        self._known: dict[str, int] = {}
        self.committed = self.aborted = self.fenced = self.read = self.offsets_read = 0

    def begin(self, name: str) -> Transaction:
        """Note a transaction."""
        self._all.append(Transaction(name))
        return self._all[-1]

    def wrote(self, transaction: Transaction, value: bytes) -> None:
        """A record is sent, and may be written."""
        self._by_value[value] = transaction

    def acknowledged(self, transaction: Transaction, topic: str, value: bytes) -> None:
        """A record was acknowledged."""
        if transaction.fate in (Fate.FENCED, Fate.ABORTED, Fate.COMMITTED):
            raise BrokenError(f"{value!r} was acknowledged in {transaction.name}, which is {transaction.fate.value}")
        transaction.values[value] = topic

    def offers(self, transaction: Transaction, group: str, offset: int) -> None:
        """An offset is sent, and may be written."""
        self._offsets[group, offset] = transaction

    def took(self, transaction: Transaction, group: str, offset: int) -> None:
        """An offset of the transaction was acknowledged."""
        if transaction.fate in (Fate.FENCED, Fate.ABORTED, Fate.COMMITTED):
            raise BrokenError(f"offset {offset} was taken in {transaction.name}, which is {transaction.fate.value}")
        transaction.group, transaction.offset = group, offset

    def known_offset(self, group: str) -> int:
        """What a group has at least: an offset of a transaction whose commit was answered; -1 for none."""
        return self._known.get(group, -1)

    def saw_offset(self, group: str, known: int, offset: int) -> None:
        """A reader of stable offsets was given one; `known` was there before it asked."""
        if offset < known:
            raise BrokenError(f"the offset of {group} is {offset}, and {known} was committed")
        if offset >= 0:
            transaction = self._offsets[group, offset]
            if transaction.fate in (Fate.OPEN, Fate.ABORTED):
                raise BrokenError(f"offset {offset} of {group} is of {transaction.name}: {transaction.fate.value}")
            self.offsets_read += 1

    def ended(self, transaction: Transaction, fate: Fate) -> None:
        """A producer was answered, or another took its place."""
        transaction.fate = fate
        if fate is Fate.COMMITTED and transaction.offset >= 0:
            self._known[transaction.group] = max(transaction.offset, self.known_offset(transaction.group))
        self.committed += fate is Fate.COMMITTED
        self.aborted += fate is Fate.ABORTED
        self.fenced += fate is Fate.FENCED

    def saw(self, topic: str, offset: int, value: bytes) -> None:
        """A read_committed reader was given a record."""
        transaction = self._by_value[value]
        if transaction.fate in (Fate.OPEN, Fate.ABORTED):
            raise BrokenError(f"{value!r} of {topic} was read, and {transaction.name} is {transaction.fate.value}")
        before = self._seen.setdefault(topic, {}).setdefault(value, offset)
        if before != offset:
            raise BrokenError(f"{value!r} is at the offsets {before} and {offset} of {topic}")
        self.read += 1

    def check(self, logs: dict[str, list[ReadBatch]], offsets: dict[str, int]) -> None:
        """At the end: `logs` are whole, nothing is open, and of each group the committed offset.

        What an unclean election may have lost is in neither.
        """
        visible = {topic: committed_values(batches) for topic, batches in logs.items()}
        for topic, values in visible.items():
            if len(set(values)) != len(values):
                raise BrokenError(f"records of {topic} are there twice: {sorted(values)}")
            missing = set(self._seen.get(topic, {})) - set(values)
            if missing:
                raise BrokenError(f"{missing} of {topic} were read, and are not committed")
        for transaction in self._all:
            kept = [(value, topic) for value, topic in transaction.values.items() if topic in visible]
            found = {value: value in visible[topic] for value, topic in kept}
            if len(set(found.values())) > 1:
                raise BrokenError(f"{transaction.name} ({transaction.fate.value}) is there in part: {found}")
            if transaction.fate is Fate.COMMITTED and not all(found.values()):
                raise BrokenError(f"{transaction.name} was committed, and is not there: {found}")
            if found and transaction.offset >= 0 and transaction.group in offsets:
                self._check_offset(transaction, all(found.values()), offsets[transaction.group])
        for topic, values in visible.items():
            for value in values:
                if self._by_value[value].fate in (Fate.ABORTED, Fate.OPEN):
                    raise BrokenError(
                        f"{value!r} of {topic} is committed, and {self._by_value[value].name} was aborted"
                    )

    def _check_offset(self, transaction: Transaction, is_there: bool, last: int) -> None:
        """An offset counts with the records of its transaction, until a later one takes its place."""
        if is_there and transaction.offset > last:
            raise BrokenError(f"{transaction.name} is there without its offset {transaction.offset}: it is {last}")
        if not is_there and transaction.offset == last:
            raise BrokenError(f"{transaction.name} is not there, and its offset {transaction.offset} is")


def committed_values(batches: list[ReadBatch]) -> list[bytes]:
    """The records of committed transactions, as the markers of a log say; of a log in which none is open."""
    waiting: dict[int, list[bytes]] = {}
    found: list[bytes] = []
    for batch in batches:
        values = [value for value in batch.values if value is not None]
        if batch.attributes & CONTROL:
            open_values = waiting.pop(batch.producer_id, [])
            found += open_values if is_commit(batch) else []
        elif batch.attributes & TRANSACTIONAL:
            waiting.setdefault(batch.producer_id, []).extend(values)
        else:
            found += values
    if any(waiting.values()):
        raise BrokenError(f"transactions are open for ever: {waiting}")
    return found


def is_commit(batch: ReadBatch) -> bool:
    """Whether a marker commits: the type behind the key's version."""
    return batch.raw[61 + 7 : 61 + 9] == b"\0\1"


def readable(batches: list[ReadBatch], aborted: list[tuple[int, int]]) -> list[tuple[int, bytes]]:
    """What a read_committed reader gives on of an answer: offsets and values (KIP-98)."""
    waiting = sorted(aborted, key=lambda one: one[1])
    dropped: set[int] = set()
    found: list[tuple[int, bytes]] = []
    for batch in batches:
        while waiting and waiting[0][1] <= batch.last_offset:
            dropped.add(waiting.pop(0)[0])
        if batch.attributes & CONTROL:
            dropped.discard(batch.producer_id)
        elif not (batch.attributes & TRANSACTIONAL and batch.producer_id in dropped):
            found += [(batch.base_offset + at, value) for at, value in enumerate(batch.values) if value is not None]
    return found
