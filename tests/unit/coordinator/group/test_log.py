"""Batches of `__consumer_offsets` that hold records which cannot be read."""

from __future__ import annotations

import struct

from pybroker.coordinator.group.log import decode_records, fault_effect
from pybroker.coordinator.group.transactional_records import TransactionalKey, TransactionEnd
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitKey
from tests.support.batches import CONTROL, TRANSACTIONAL, Batch, Record, end_marker
from tests.support.coordinator_records import offset_key, offset_record, text


def test_a_value_that_cannot_be_read_is_named_and_skipped() -> None:
    bad = Record(b"\0\x63", offset_key("g", "t"))
    chunk = decode_records(
        Batch((offset_record("g", "t", 4), bad, offset_record("h", "t", 5)), base_offset=10).encode()
    )
    assert [(key.group, value.offset) for key, value in chunk.records] == [("g", 4), ("h", 5)]
    (fault,) = chunk.faults
    assert (fault.first_offset, fault.key.group, fault.key.topic) == (11, "g", "t")
    assert "group 'g' keeps the offset of t-0 from another record" in fault_effect(fault.key)


def test_a_group_whose_state_cannot_be_read_is_named() -> None:
    classic = Record(b"\0\x63", struct.pack(">h", 2) + text("g"))
    modern = Record(b"\0\x63", struct.pack(">h", 3) + text("m"))
    faults = decode_records(Batch((classic, modern)).encode()).faults
    assert [fault_effect(one.key)[:25] for one in faults] == ["group 'g' keeps the state", "group 'm' keeps the state"]
    assert "is unknown" in fault_effect(None)


def test_a_transaction_keeps_its_other_offsets_and_its_end() -> None:
    bad = Record(b"", offset_key("g", "t"))
    records = (bad, offset_record("g", "u", 6))
    batch = Batch(records, attributes=TRANSACTIONAL, producer_id=9, producer_epoch=1).encode()
    no_marker = Batch(
        (Record(b"", b""),), base_offset=2, attributes=TRANSACTIONAL | CONTROL, producer_id=9, producer_epoch=1
    ).encode()
    chunk = decode_records(batch + no_marker + end_marker(9, 1, 0, commit=True, base_offset=3))
    (inner, value), (end, _) = chunk.records
    assert isinstance(inner, TransactionalKey)
    assert isinstance(inner.key, OffsetCommitKey)
    assert (inner.producer_id, inner.key.topic, value.offset) == (9, "u", 6)
    assert end == TransactionEnd(9, 1, True)
    assert [fault.first_offset for fault in chunk.faults] == [0, 2]
