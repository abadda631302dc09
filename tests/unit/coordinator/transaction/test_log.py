"""Batches of `__transaction_state`."""

from __future__ import annotations

import pytest

from pybroker.coordinator.transaction.log import TransactionRecordCodec
from pybroker.coordinator.transaction.metadata import TransactionMetadata
from pybroker.coordinator.transaction.records import TransactionRecord, build_metadata
from pybroker.coordinator.transaction.states import TransactionState

CODEC = TransactionRecordCodec()
ONGOING = TransactionMetadata(
    producer_id=7,
    previous_producer_id=7,
    producer_epoch=3,
    timeout_ms=1000,
    state=TransactionState.ONGOING,
    partitions=frozenset({("a", 0)}),
    started_ms=10,
    updated_ms=20,
    client_version=2,
)


def test_what_is_written_is_read() -> None:
    records = [TransactionRecord("t", ONGOING), TransactionRecord("u", None)]
    batches = CODEC.encode(records, 20, max_batch_bytes=1 << 20)
    chunk = CODEC.decode(batches)
    (key, value), (gone, nothing) = chunk.records
    assert (key.transactional_id, build_metadata(value)) == ("t", ONGOING)
    assert (gone.transactional_id, nothing) == ("u", None)
    assert (chunk.next_offset, chunk.size, chunk.skipped) == (2, len(batches), 0)


@pytest.mark.parametrize("version", [0, 1])
def test_both_versions_of_the_value_are_read(version: int) -> None:
    batches = CODEC.encode([TransactionRecord("t", ONGOING, version)], 20, max_batch_bytes=1 << 20)
    ((_, value),) = CODEC.decode(batches).records
    assert build_metadata(value).client_version == (2 if version else 0)


def test_nothing_is_no_batch() -> None:
    assert CODEC.encode([], 20, max_batch_bytes=1 << 20) == b""


def test_batches_are_not_larger_than_the_log_takes() -> None:
    records = [TransactionRecord(f"t{number}", ONGOING) for number in range(50)]
    batches = CODEC.encode(records, 20, max_batch_bytes=500)
    assert int.from_bytes(batches[8:12]) + 12 <= 500
    assert len(CODEC.decode(batches).records) == 50
