"""The records of the suite `streams`, and what an application must write for them.

Owns the arithmetic of inputs and outputs. Must not know brokers or programs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pybench.streams_application import ADVANCE_MS, LARGE, WINDOW_MS

STRIDE = 7_368_787
"""A prime. Multiples of it visit keys in an order that is not sorted."""
AMOUNTS = 1_000
SPAN_MS = 300_000
"""The timestamps of all records are in this range, in milliseconds."""
CHECKED = ("stateless", "stateless-columns", "count", "windows")
"""The rows with an output that has expected sums."""
WINDOWS_OF_A_RECORD = WINDOW_MS // ADVANCE_MS


class Input(msgspec.Struct, frozen=True):
    """The input of a row."""

    records: int
    keys: int
    size: int
    """The bytes of a value."""
    is_table: bool = False
    """Whether a value is a row of a table: the key, filled up to `size`. Otherwise a value is JSON."""

    def key(self, number: int) -> str:
        """Return the key of a record."""
        return f"k{number * STRIDE % self.keys:09d}"

    def value(self, number: int) -> bytes:
        """Return the value of a record."""
        if self.is_table:
            return self.key(number).encode().ljust(self.size, b"x")
        start = f'{{"id":{number},"amount":{amount(number)},"pad":"'
        return f'{start:x<{self.size - 2}}"}}'.encode()

    def timestamp(self, number: int, begin_ms: int) -> int:
        """Return the timestamp of a record, in milliseconds."""
        return begin_ms + number * SPAN_MS // self.records

    def batches(self, begin_ms: int, rows: int) -> Iterator[tuple[list[str], list[bytes], list[int]]]:
        """Yield keys, values and timestamps of `rows` records at a time."""
        for first in range(0, self.records, rows):
            numbers = range(first, min(first + rows, self.records))
            yield (
                [self.key(n) for n in numbers],
                [self.value(n) for n in numbers],
                [self.timestamp(n, begin_ms) for n in numbers],
            )


class Output(msgspec.Struct, frozen=True):
    """What an application has written."""

    rows: int
    """The number of all records."""
    last: Mapping[bytes, bytes]
    """The last value of each key."""


def amount(number: int) -> int:
    """Return the amount in the value of a record: 1 to `AMOUNTS`."""
    return number % AMOUNTS + 1


def check_output(row: str, given: Input, output: Output) -> str:
    """Return how the output of a row differs from the expected one. Empty if it does not."""
    amounts = [amount(number) for number in range(given.records)]
    if row.startswith("stateless"):
        large = [one for one in amounts if one > LARGE]
        expected = {"records": len(large), "sum": 2 * sum(large)}
        found = {"records": output.rows, "sum": sum(json.loads(v)["amount"] for v in output.last.values())}
    elif row == "count":
        expected = {"keys": min(given.keys, given.records), "sum": given.records}
        found = {"keys": len(output.last), "sum": _sum(output)}
    else:
        expected = {"sum": WINDOWS_OF_A_RECORD * sum(amounts)}
        found = {"sum": _sum(output)}
    return "" if found == expected else f"output of row {row}: {found}, expected {expected}"


def _sum(output: Output) -> int:
    return sum(int.from_bytes(value, "big", signed=True) for value in output.last.values())


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of all values do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]
