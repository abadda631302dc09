"""The topic, partition and offset of a written record, as producers return it."""

from __future__ import annotations

from typing import NamedTuple


class RecordMetadata(NamedTuple):
    """Where a record was written; offset -1 where the broker returns none (acks=0), or where it was not written."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
