"""A batch of records in each codec, built and checked by kafka-python, by aiokafka's Cython and by the broker's Rust.

Checking is what a reader or a broker does: the checksum, and every record to its end. Owns the records and how each
library is asked; takes no time. Raises ModuleNotFoundError where a library is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from micro import native

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PEERS = ["kafka_python", "aiokafka", "native"]
TIMESTAMP = 1_700_000_000_000
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
    library = "kafka" if peer == "kafka_python" else "aiokafka"
    return importlib.import_module(f"{library}.record.default_records")
