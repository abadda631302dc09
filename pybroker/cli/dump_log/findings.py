"""What a dump finds wrong, printed on standard error when all files are through, as Kafka's tool does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Findings:
    """Mismatches, by the absolute path of their file."""

    index_mismatches: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    """Last offset of an index entry, and that of the batch at its position."""
    timestamp_mismatches: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Timestamp of an entry, and the largest of its batch."""
    timestamp_disorder: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Timestamp of an entry, and that of the previous one."""
    offsets_not_found: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Offset of an entry, and the last offset of the batch at its position."""
    gaps: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    """Offset of a record, and that of the next record, where there is a gap between them."""

    def lines(self) -> Iterator[str]:
        """Yield Kafka's messages."""
        for name, mismatches in self.index_mismatches.items():
            yield f"Mismatches in :{name}"
            for index, found in sorted(mismatches.items(), reverse=True):
                yield f"  Index offset: {index}, log offset: {found}"
        for name, pairs in self.timestamp_mismatches.items():
            yield f"Found timestamp mismatch in :{name}"
            yield from (f"  Index timestamp: {index}, log timestamp: {found}" for index, found in pairs)
        for name, pairs in self.timestamp_disorder.items():
            yield f"Found out of order timestamp in :{name}"
            yield from (
                f"  Index timestamp: {index}, Previously indexed timestamp: {before}" for index, before in pairs
            )
        for name, pairs in self.offsets_not_found.items():
            yield f"The following indexed offsets are not found in :{name}"
            yield from (f"Indexed offset: {index}, found log offset: {found}" for index, found in pairs)
        for name, gaps in self.gaps.items():
            yield f"Non-consecutive offsets in {name}"
            yield from (f"  {first} is followed by {second}" for first, second in sorted(gaps.items()))
