from __future__ import annotations

import pytest

from pybroker.client.java.murmur2 import murmur2, partition_of

VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""The vectors of Kafka's UtilsTest."""


@pytest.mark.parametrize(("data", "signed"), VECTORS.items())
def test_hashes_are_kafkas(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed & 0xFFFFFFFF


def test_a_partition_is_the_positive_hash_modulo_the_count() -> None:
    assert partition_of(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7
