"""Message sets of v0 and v1 as kafka-python builds and reads them, against our conversions to v2 and back."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from pybroker._native import down_convert, up_convert, validate_batch

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3}
Record = tuple[int, bytes | None, bytes | None]

part = st.none() | st.binary(max_size=300)
records = st.lists(st.tuples(st.integers(0, 2**45), part, part), min_size=1, max_size=20)


def built(builder: Any, batch: list[Record]) -> bytes:
    """What a builder of kafka-python makes of records."""
    for offset, (timestamp, key, value) in enumerate(batch):
        builder.append(offset, timestamp=timestamp, key=key, value=value, headers=[])
    return bytes(builder.build())


def read(records: Any) -> list[tuple[int, int | None, bytes | None, bytes | None]]:
    """Every record of a peer's reader of batches and sets."""
    found: list[tuple[int, int | None, bytes | None, bytes | None]] = []
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(record.offset, record.timestamp, record.key, record.value) for record in batch]
    return found


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=20, deadline=None)
@given(batch=records)
def test_a_set_of_a_peer_becomes_a_batch_that_peers_read(magic: int, codec: str, batch: list[Record]) -> None:
    converted = up_convert(built(LegacyRecordBatchBuilder(magic, CODECS[codec], 1 << 20), batch))
    assert validate_batch(converted) == len(batch)
    expected = [
        (offset, timestamp if magic else -1, key, value) for offset, (timestamp, key, value) in enumerate(batch)
    ]
    for reader in (KafkaPythonRecords, AiokafkaRecords):
        assert read(reader(converted)) == expected


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=20, deadline=None)
@given(batch=records)
def test_a_batch_of_a_peer_becomes_a_set_that_peers_read(magic: int, codec: str, batch: list[Record]) -> None:
    made = built(DefaultRecordBatchBuilder(2, CODECS[codec], 0, 7, 1, 5, 1 << 20), batch)
    converted = down_convert(made, magic)
    expected = [
        (offset, timestamp if magic else None, key, value) for offset, (timestamp, key, value) in enumerate(batch)
    ]
    # aiokafka does not know the frames of lz4 in v0.
    for reader in (KafkaPythonRecords, *[AiokafkaRecords] * ((magic, codec) != (0, "lz4"))):
        assert read(reader(converted)) == expected
