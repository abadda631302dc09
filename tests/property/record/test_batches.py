"""Batches of kafka-python and aiokafka are valid to us in every codec, and ours are to them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from pybroker._native import build_batch, validate_batch

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]

part = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=8), st.binary(max_size=9)), max_size=3)
records = st.lists(st.tuples(st.integers(0, 2**45), part, part, headers), min_size=1, max_size=20)


def built(builder: type, codec: int, batch: list[Record]) -> bytes:
    """A batch as a peer builds it."""
    open_batch = builder(2, codec, 0, 7, 1, 5, 1 << 20)
    for offset, (timestamp, key, value, own_headers) in enumerate(batch):
        open_batch.append(offset, timestamp=timestamp, key=key, value=value, headers=own_headers)
    return bytes(open_batch.build())


@pytest.mark.parametrize("builder", [AiokafkaBuilder, KafkaPythonBuilder], ids=["aiokafka", "kafka-python"])
@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=20, deadline=None)
@given(batch=records)
def test_a_batch_of_a_peer_is_valid(builder: type, codec: str, batch: list[Record]) -> None:
    assert validate_batch(built(builder, CODECS[codec], batch)) == len(batch)


@pytest.mark.parametrize("read", [AiokafkaBatch, KafkaPythonBatch], ids=["aiokafka", "kafka-python"])
@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.binary(max_size=300), min_size=1, max_size=200), timestamp=st.integers(0, 2**45))
def test_a_peer_reads_our_batch(read: Callable[[bytes], AiokafkaBatch], values: list[bytes], timestamp: int) -> None:
    batch = read(build_batch(values, timestamp))
    assert batch.validate_crc()
    found = [(record.offset, record.timestamp, record.key, record.value) for record in batch]
    assert found == [(offset, timestamp, None, value) for offset, value in enumerate(values)]
