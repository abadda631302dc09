"""The fixed corpus of varied records that every client sends and reads back.

It has empty and null values, keys, headers, compressible text and incompressible bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

RECORDS = 100_000
PARTITIONS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

_NOISE = random.Random(20261121).randbytes(1 << 16)
_TEXT = b"the quick brown fox jumps over the lazy dog 0123456789 " * 40


class Sent(NamedTuple):
    """One record of the corpus."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def record(number: int) -> Sent:
    """Return the record with this number."""
    partition = number % PARTITIONS
    key = None if number % 7 == 0 else b"key-%d" % (number % 1000)
    length = number * 7 % 211
    start = number * 31
    if number % 1009 == 0 and key is not None:
        value = None
    elif number % 3 == 0:
        value = _NOISE[start % 60_000 :][:length]
    else:
        value = b"%d " % number + _TEXT[start % 2000 :][:length]
    headers = (("trace", b"%d" % number), ("empty", b"")) if number % 101 == 0 else ()
    return Sent(partition, key, value, headers)


def records(count: int = RECORDS) -> Iterator[Sent]:
    """Return the corpus in the order of sending."""
    return map(record, range(count))


def lines(count: int = RECORDS) -> list[tuple[bytes, bytes]]:
    """Return keys and values without line breaks, for programs that read lines."""
    return [
        (b"key-%d" % (number % 1000), b"%d %s" % (number, _TEXT[number % 2000 :][: number % 97]))
        for number in range(count)
    ]


class Audit:
    """Compares the records of a consumer with the corpus: each exactly once, in order, at the right offset."""

    def __init__(self, count: int = RECORDS) -> None:
        self._expected: Mapping[int, Sequence[Sent]] = {
            partition: [sent for sent in records(count) if sent.partition == partition]
            for partition in range(PARTITIONS)
        }
        self._next = dict.fromkeys(range(PARTITIONS), 0)
        self._left = count

    def see(
        self, partition: int, offset: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]]
    ) -> None:
        """Check one consumed record."""
        due = self._next[partition]
        assert offset == due, f"partition {partition}: offset {offset} came where {due} was due"
        assert Sent(partition, key, value, tuple(headers)) == self._expected[partition][offset]
        self._next[partition] = due + 1
        self._left -= 1

    @property
    def complete(self) -> bool:
        """Whether every record was seen."""
        return self._left == 0
