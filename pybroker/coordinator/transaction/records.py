"""Records of decisions about transactions: one for each changed transactional id.

Owns the conversion between `TransactionMetadata` and Kafka's TransactionLogValue. Must not know bytes: `log` encodes
batches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.transaction.metadata import NO_PARTITIONS, TransactionMetadata
from pybroker.coordinator.transaction.states import LOGGED, NUMBERS, STATES, TransactionState
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.messages.transaction_records.transaction_log import PartitionsSchema, TransactionLogValue

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST_VERSION_WITH_OTHER_IDS = 1
"""Version of the value from transaction.version 1 on, with the previous and the next producer id (KIP-890)."""
_FIRST_VERSION_WITH_FLEXIBLE_RECORDS = 1
"""A level of transaction.version."""
_MOST_KEPT = 64
"""Maximum number of partitions of a cached list: larger lists take too much memory."""


class TransactionRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of `__transaction_state`."""

    transactional_id: str
    metadata: TransactionMetadata | None
    """None is a tombstone: the id is deleted."""
    version: int = FIRST_VERSION_WITH_OTHER_IDS
    """Version of the value."""


def value_version(server_version: int) -> int:
    """Return the version of values at a level of transaction.version."""
    return FIRST_VERSION_WITH_OTHER_IDS if server_version >= _FIRST_VERSION_WITH_FLEXIBLE_RECORDS else 0


def build_value(metadata: TransactionMetadata, version: int) -> TransactionLogValue:
    """Return the value of a record; version 0 has no fields for the previous and the next producer id."""
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=NUMBERS[metadata.state],
        transaction_partitions=None if metadata.state is TransactionState.EMPTY else _topics_of(metadata.partitions),
        transaction_last_update_timestamp_ms=metadata.updated_ms,
        transaction_start_timestamp_ms=metadata.started_ms,
    )
    if version >= FIRST_VERSION_WITH_OTHER_IDS:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_version
    return value


def build_metadata(value: TransactionLogValue) -> TransactionMetadata:
    """Return the metadata of a record's value; raises `MalformedMessage` as `check_value`."""
    state = check_value(value)
    partitions = NO_PARTITIONS
    if value.transaction_partitions:
        partitions = frozenset(
            (topic.topic, index) for topic in value.transaction_partitions for index in topic.partition_ids
        )
    return TransactionMetadata(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def check_value(value: TransactionLogValue) -> TransactionState:
    """Return the state in a record's value; raises `MalformedMessage` for an invalid one."""
    number = value.transaction_status
    state = STATES[number] if 0 <= number < len(STATES) else None
    if state not in LOGGED or state is None:
        raise MalformedMessage(f"the transaction status is {number}, which no record has")
    return state


def _topics_of(partitions: frozenset[tuple[str, int]]) -> list[PartitionsSchema]:
    """Return the record's partitions by topic; callers must not change the result."""
    return _kept(partitions) if len(partitions) <= _MOST_KEPT else _by_topic(partitions)


@lru_cache(maxsize=256)
def _kept(partitions: frozenset[tuple[str, int]]) -> list[PartitionsSchema]:
    # A transaction writes the list twice, and the producer's next transaction mostly has the same partitions.
    return _by_topic(partitions)


def _by_topic(partitions: Iterable[tuple[str, int]]) -> list[PartitionsSchema]:
    topics: dict[str, PartitionsSchema] = {}
    for name, index in sorted(partitions):
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = PartitionsSchema(topic=name, partition_ids=[])
        topic.partition_ids.append(index)
    return list(topics.values())
