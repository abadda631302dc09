"""Batches of each codec, built and checked by kafka-python, by aiokafka's Cython and by the broker's Rust.

Checking is what a reader or a broker does: the checksum, and every record to its end. Run: `make micro`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from micro import native
from micro.test_kernels import TIMESTAMP

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PEERS = ["kafka_python", "aiokafka", "native"]
#: Text that compresses about as well as records do.
VALUES = [
    (b'{"user":%d,"page":"/item/%d","ms":%d}' % (n * 7919 % 977, n % 53, n * 104729) * 3)[:100] for n in range(150)
]


def build(peer: str, codec: str) -> bytes:
    """A batch of the values."""
    if peer == "native":
        return native.build_batch(VALUES, TIMESTAMP, codec)
    builder = _records(peer).DefaultRecordBatchBuilder(2, CODECS.index(codec), 0, -1, -1, -1, 1 << 20)
    for offset, value in enumerate(VALUES):
        builder.append(offset, timestamp=TIMESTAMP, key=None, value=value, headers=[])
    return bytes(builder.build())


def check(peer: str) -> Callable[[bytes], int]:
    """What checks a batch and counts its records."""
    if peer == "native":
        return native.validate_batch
    kind = _records(peer).DefaultRecordBatch

    def count(batch: bytes) -> int:
        read = kind(batch)
        assert read.validate_crc()
        return sum(1 for _ in read)

    return count


def _records(peer: str) -> Any:
    module = pytest.importorskip("kafka" if peer == "kafka_python" else "aiokafka").__name__
    return pytest.importorskip(f"{module}.record.default_records")


@pytest.fixture(params=CODECS)
def codec(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> str:
    """One codec; its rows stand together."""
    name = str(request.param)
    verb = "check" if "check" in request.node.name else "build"
    benchmark.group = f"{verb} a batch of 150 records of 100 bytes, {name}"
    return name


@pytest.mark.parametrize("peer", PEERS)
def test_build(peer: str, codec: str, benchmark: BenchmarkFixture) -> None:
    """Records to a batch; everybody else reads it."""
    batch = benchmark(build, peer, codec)
    assert [check(other)(batch) for other in PEERS] == [len(VALUES)] * len(PEERS)


@pytest.mark.parametrize("peer", PEERS)
def test_check(peer: str, codec: str, benchmark: BenchmarkFixture) -> None:
    """A batch of kafka-python's."""
    batch = build("kafka_python", codec)
    assert benchmark(check(peer), batch) == len(VALUES)
