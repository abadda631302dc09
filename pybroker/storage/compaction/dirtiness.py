"""The dirtiness of a log, and its part that may be compacted (Kafka's `LogCleanerManager`, `LogToClean`).

    clean bytes      = segments that begin below the first dirty offset
    cleanable bytes  = segments from the one with the first dirty offset on, up to the first uncleanable one
    dirty ratio      = cleanable / (clean + cleanable)
    overdue by       = (now - max.compaction.lag.ms) - timestamp of the oldest dirty segment, where that is above 0

The first uncleanable segment is the first of: the active segment, the segment with the last stable offset, the first
dirty segment with a record younger than min.compaction.lag.ms. Owns only these equations: no file, no clock.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.config.topic import TopicConfig


class Segment(msgspec.Struct, frozen=True):
    """The properties of one segment that the decision needs."""

    base_offset: int
    size: int
    largest_timestamp: int
    """In ms; -1 if no record has a timestamp."""


class CompactionPolicy(msgspec.Struct, frozen=True):
    """A topic's configuration of compaction."""

    compact: bool
    delete: bool
    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int

    @classmethod
    def of(cls, topic: TopicConfig) -> CompactionPolicy:
        """Return the policy from a topic's configuration."""
        return cls(
            compact="compact" in topic.cleanup_policy,
            delete="delete" in topic.cleanup_policy,
            min_dirty_ratio=topic.min_cleanable_dirty_ratio,
            min_lag_ms=topic.min_compaction_lag_ms,
            max_lag_ms=topic.max_compaction_lag_ms,
        )


class Bytes(msgspec.Struct, frozen=True):
    """The clean and cleanable bytes of a log; uncleanable bytes are in neither."""

    clean: int
    cleanable: int

    @property
    def ratio(self) -> float:
        """The dirty ratio; 0 for a log without bytes."""
        total = self.clean + self.cleanable
        return self.cleanable / total if total else 0.0


def first_dirty_offset(checkpoint: int | None, log_start: int, log_end: int) -> int:
    """Return the first dirty offset: the checkpoint if it is inside the log, else the log start offset."""
    if checkpoint is None or not log_start <= checkpoint <= log_end:
        return log_start
    return checkpoint


def first_uncleanable_offset(
    segments: Sequence[Segment], first_dirty: int, last_stable: int, policy: CompactionPolicy, now_ms: int
) -> int:
    """Return the base offset of the first segment that may not be compacted now."""
    bound = min(last_stable, segments[-1].base_offset)
    if policy.min_lag_ms > 0:
        young = now_ms - policy.min_lag_ms
        dirty = segments[_floor(segments, first_dirty) : -1]
        bound = min([bound, *(segment.base_offset for segment in dirty if segment.largest_timestamp > young)])
    return segments[_floor(segments, max(bound, first_dirty))].base_offset


def bytes_of(segments: Sequence[Segment], first_dirty: int, first_uncleanable: int) -> Bytes:
    """Return the clean and the cleanable bytes."""
    first = _floor(segments, min(first_dirty, first_uncleanable))
    return Bytes(
        sum(segment.size for segment in segments if segment.base_offset < first_dirty),
        sum(segment.size for segment in segments[first:] if segment.base_offset < first_uncleanable),
    )


def overdue_ms(oldest_timestamp: int | None, policy: CompactionPolicy, now_ms: int) -> int:
    """Return the ms since max.compaction.lag.ms has passed for the oldest dirty segment; 0 if it has not."""
    if oldest_timestamp is None:
        return 0
    return max(0, now_ms - policy.max_lag_ms - oldest_timestamp)


def _floor(segments: Sequence[Segment], offset: int) -> int:
    """Return the index of the segment that contains `offset`."""
    return max(0, bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1)
