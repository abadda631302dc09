"""Timestamp extractors: which timestamp of a record windowing and joins use (`TimestampExtractor`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from pybroker.streams.errors import StreamsError
from pybroker.streams.records import Headers

log = logging.getLogger(__name__)


class ConsumedRecord(msgspec.Struct, frozen=True):
    """A record of a source topic with its deserialized key and value, as a timestamp extractor receives it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since the epoch; -1 if the record has none."""
    key: Any
    value: Any
    headers: Headers = ()


TimestampExtractor = Callable[[ConsumedRecord, int], int]
"""`(record, partition_time) -> timestamp`. `partition_time` is the largest timestamp of the partition so far, or -1.

The task skips a record whose extracted timestamp is negative."""


def fail_on_invalid_timestamp(record: ConsumedRecord, partition_time: int) -> int:
    """Return the record's own timestamp. This is the default.

    Raises:
        StreamsError: the record has no timestamp.
    """
    del partition_time
    if record.timestamp < 0:
        raise StreamsError(
            f"record {record.topic}-{record.partition} offset {record.offset} has the invalid timestamp "
            f"{record.timestamp}: expected >= 0. The producer may be older than Kafka 0.10. Another "
            "timestamp_extractor can use or skip such records"
        )
    return record.timestamp


def log_and_skip_on_invalid_timestamp(record: ConsumedRecord, partition_time: int) -> int:
    """Return the record's own timestamp. A record without one is logged and skipped."""
    del partition_time
    if record.timestamp < 0:
        log.warning(
            "Skipping record %s-%d offset %d: its timestamp %d is negative",
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
        )
    return record.timestamp


def use_partition_time_on_invalid_timestamp(record: ConsumedRecord, partition_time: int) -> int:
    """Return the record's own timestamp, or the largest one of its partition if the record has none.

    Raises:
        StreamsError: neither exists.
    """
    if record.timestamp >= 0:
        return record.timestamp
    if partition_time < 0:
        raise StreamsError(
            f"record {record.topic}-{record.partition} offset {record.offset} has no timestamp, and no record before "
            "it has one"
        )
    return partition_time
