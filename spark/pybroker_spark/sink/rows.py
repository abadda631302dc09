"""Fingerprints of rows, to compare them with records in the log, and multisets of fingerprints.

A fingerprint covers the values that a consumer gets: topic, key, value and headers. It excludes the partition (which
may have been chosen by the client) and the timestamp (which the broker may set). Must not know Spark or a broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_NULL = b"\xff\xff\xff\xff"
_MODULUS = 1 << 128


def fingerprints(batch: pa.RecordBatch, topic: str | None = None) -> list[bytes]:
    """Return 16 bytes for each row, equal for equal rows; `topic` is the topic of rows without a topic column.

    The hash is cryptographic, so that different rows with equal fingerprints cannot be constructed.
    """
    rows = batch.num_rows
    names = set(batch.schema.names)
    topics = batch.column("topic").to_pylist() if "topic" in names else [None] * rows
    keys = batch.column("key").to_pylist() if "key" in names else [None] * rows
    values = batch.column("value").to_pylist()
    headers = batch.column("headers").to_pylist() if "headers" in names else [None] * rows
    return [
        _fingerprint(topic if own is None else own, key, value, head)
        for own, key, value, head in zip(topics, keys, values, headers, strict=True)
    ]


def _fingerprint(
    topic: str | None, key: bytes | str | None, value: bytes | str | None, headers: list[dict[str, object]] | None
) -> bytes:
    parts = [_sized(topic), _sized(key), _sized(value)]
    for header in headers or ():
        parts += [_sized(header["key"]), _sized(header["value"])]
    return blake2b(b"".join(parts), digest_size=16).digest()


def _sized(part: object) -> bytes:
    if part is None:
        return _NULL
    data = part.encode() if isinstance(part, str) else part
    assert isinstance(data, bytes)
    return len(data).to_bytes(4, "big") + data


class Sum:
    """A multiset of rows as two numbers: equal multisets have equal sums, others only with chance 2^-128."""

    __slots__ = ("rows", "total")

    def __init__(self, marks: Iterable[bytes] = ()) -> None:
        self.rows = self.total = 0
        self.add(marks)

    def add(self, marks: Iterable[bytes]) -> None:
        """Add rows."""
        for mark in marks:
            self.rows += 1
            self.total = (self.total + int.from_bytes(mark, "big")) % _MODULUS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and (self.rows, self.total) == (other.rows, other.total)

    __hash__ = None  # type: ignore[assignment]  # it changes


class Bag:
    """The rows in the log that were not matched yet: fingerprints with their counts."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self.rows = 0

    def __contains__(self, mark: bytes) -> bool:
        return mark in self._counts

    def add(self, marks: Iterable[bytes]) -> None:
        """Add rows."""
        for mark in marks:
            self._counts[mark] = self._counts.get(mark, 0) + 1
            self.rows += 1

    def take(self, mark: bytes) -> bool:
        """Remove one row with this fingerprint. Returns whether there was one."""
        count = self._counts.get(mark)
        if count is None:
            return False
        if count == 1:
            del self._counts[mark]
        else:
            self._counts[mark] = count - 1
        self.rows -= 1
        return True
