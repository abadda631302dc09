"""Batches of `__transaction_state`."""

from __future__ import annotations

import pytest

from pybroker.coordinator.transaction.log import TransactionRecordCodec, fault_effect
from pybroker.coordinator.transaction.metadata import TransactionMetadata
from pybroker.coordinator.transaction.records import TransactionRecord, build_metadata
from pybroker.coordinator.transaction.states import TransactionState
from tests.support.batches import GZIP, Batch, Record, encode_record
from tests.support.coordinator_records import transaction_key, transaction_record, transaction_value

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
    (key, value), (removed, nothing) = chunk.records
    assert (key.transactional_id, build_metadata(value)) == ("t", ONGOING)
    assert (removed.transactional_id, nothing) == ("u", None)
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


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (transaction_value(status=3 + 4), "the transaction status is 7, which no record has"),
        (transaction_value(status=-1), "the transaction status is -1"),
        (transaction_value()[:-1], ""),
        (transaction_value(version=99), "99"),
        (b"", "less than two bytes"),
    ],
    ids=["a status that no record has", "a negative status", "a cut value", "an unknown version", "an empty value"],
)
def test_a_value_that_cannot_be_read_is_named_and_forgets_its_id(value: bytes, cause: str) -> None:
    records = (transaction_record("a"), Record(value, transaction_key("bad")), transaction_record("b"))
    chunk = CODEC.decode(Batch(records, base_offset=40).encode())
    assert [(key.transactional_id, found is None) for key, found in chunk.records] == [
        ("a", False),
        ("bad", True),
        ("b", False),
    ]
    (fault,) = chunk.faults
    assert (fault.first_offset, fault.last_offset, fault.key.transactional_id) == (41, 41, "bad")
    assert cause in fault.cause
    assert "transactional id 'bad' is unknown here unless a later record has its state" in fault_effect(fault.key)
    assert chunk.next_offset == 43


@pytest.mark.parametrize("key", [None, b"", transaction_key("bad")[:-1]], ids=["none", "empty", "cut"])
def test_a_key_that_cannot_be_read_is_named_by_its_offset(key: bytes | None) -> None:
    records = (Record(transaction_value(), key), transaction_record("b"))
    chunk = CODEC.decode(Batch(records, base_offset=7).encode())
    assert [key.transactional_id for key, _ in chunk.records] == ["b"]
    ((first, last, of), *_) = [(fault.first_offset, fault.last_offset, fault.key) for fault in chunk.faults]
    assert (first, last, of) == (7, 7, None)
    assert "is unknown" in fault_effect(None)


def test_the_rest_of_a_batch_whose_records_cannot_be_parsed_is_named_and_the_next_batch_is_read() -> None:
    good = encode_record(transaction_record("a"), 0)
    torn = Batch(base_offset=3, section=good + b"\xff" * 5, count=4, last_offset_delta=3).encode()
    packed = Batch(base_offset=7, section=b"no gzip", count=2, last_offset_delta=1, attributes=GZIP).encode()
    after = Batch((transaction_record("b"),), base_offset=9).encode()
    chunk = CODEC.decode(torn + packed + after)
    assert [key.transactional_id for key, _ in chunk.records] == ["a", "b"]
    assert [(fault.first_offset, fault.last_offset, fault.key) for fault in chunk.faults] == [
        (4, 6, None),
        (7, 8, None),
    ]
    assert chunk.next_offset == 10
