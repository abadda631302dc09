"""Each kernel gives in every language what it gives in the others, and takes this long."""

from __future__ import annotations

import random
from array import array
from struct import Struct

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from micro.codecs import TIMESTAMP
from micro.kernels import Integers, Kernels

EDGES = [0, -1, 1, 63, -64, 64, -65, 8191, -8192, 8192, 2**31, -(2**31), 2**63 - 1, -(2**63)]


def integers(count: int) -> Integers:
    """Numbers of every length; the short ones are many, as in records."""
    dice = random.Random(17)
    return array("q", EDGES + [dice.randrange(-(1 << (dice.randrange(7) ** 2)), 1 << 20) for _ in range(count)])


def values(count: int, size: int) -> list[bytes]:
    """Values of one size."""
    dice = random.Random(23)
    return [dice.randbytes(size) for _ in range(count)]


def index(count: int) -> bytes:
    """An offset index of entries some offsets and bytes apart."""
    dice, entry = random.Random(29), Struct(">II")
    offset = position = 0
    entries = bytearray()
    for _ in range(count):
        offset, position = offset + dice.randrange(1, 90), position + dice.randrange(4096, 9000)
        entries += entry.pack(offset, position)
    return bytes(entries)


@pytest.mark.benchmark(group="zigzag, 1,000 integers")
def test_zigzag(kernels: Kernels, oracle: Kernels, benchmark: BenchmarkFixture) -> None:
    """Signed to unsigned."""
    numbers = integers(1000)
    assert list(memoryview(kernels.zigzag(array("q", [0, -1, 1, -2]))).cast("Q")) == [0, 1, 2, 3]
    assert kernels.zigzag(numbers) == oracle.zigzag(numbers)
    benchmark(kernels.zigzag, numbers)


@pytest.mark.benchmark(group="encode varints, 1,000 integers")
def test_encode_varints(kernels: Kernels, oracle: Kernels, benchmark: BenchmarkFixture) -> None:
    """Integers to varints."""
    numbers = integers(1000)
    assert kernels.encode_varints(array("q", [0, -1, 300])) == b"\x00\x01\xd8\x04"
    assert kernels.encode_varints(numbers) == oracle.encode_varints(numbers)
    benchmark(kernels.encode_varints, numbers)


@pytest.mark.benchmark(group="decode varints, 1,000 integers")
def test_decode_varints(kernels: Kernels, oracle: Kernels, benchmark: BenchmarkFixture) -> None:
    """Varints to integers."""
    numbers = integers(1000)
    encoded = oracle.encode_varints(numbers)
    assert kernels.decode_varints(encoded) == numbers.tobytes()
    assert kernels.decode_varints(b"") == b""
    with pytest.raises(ValueError, match="varint"):
        kernels.decode_varints(encoded + b"\x80")
    benchmark(kernels.decode_varints, encoded)


@pytest.mark.benchmark(group="crc32c, 16 KiB")
def test_crc32c(kernels: Kernels, oracle: Kernels, benchmark: BenchmarkFixture) -> None:
    """The checksum of a batch of the default size."""
    data = random.Random(31).randbytes(16 << 10)
    assert kernels.crc32c(b"123456789") == 0xE3069283
    assert kernels.crc32c(b"") == 0
    for size in (1, 255, 256, 257, 3001):
        assert kernels.crc32c(data[:size]) == oracle.crc32c(data[:size])
    assert kernels.crc32c(data) == oracle.crc32c(data)
    benchmark(kernels.crc32c, data)


@pytest.mark.benchmark(group="build a batch, 150 records of 100 bytes")
def test_build_batch(kernels: Kernels, oracle: Kernels, benchmark: BenchmarkFixture) -> None:
    """A batch of the default size."""
    for count, size in ((1, 0), (1, 1000), (100, 63), (9000, 10), (150, 100)):
        records = values(count, size)
        assert kernels.build_batch(records, TIMESTAMP) == oracle.build_batch(records, TIMESTAMP)
    benchmark(kernels.build_batch, values(150, 100), TIMESTAMP)


@pytest.mark.benchmark(group="validate a batch, 150 records of 100 bytes")
def test_validate_batch(kernels: Kernels, oracle: Kernels, benchmark: BenchmarkFixture) -> None:
    """A batch of the default size."""
    batch = oracle.build_batch(values(150, 100), TIMESTAMP)
    assert kernels.validate_batch(batch) == 150
    for damaged in (batch[:-1], batch + b"\0", batch[:80] + b"!" + batch[81:]):
        with pytest.raises(ValueError, match=r"."):
            kernels.validate_batch(damaged)
    assert benchmark(kernels.validate_batch, batch) == 150


@pytest.mark.benchmark(group="search an offset index of 10,000 entries")
def test_search_index(kernels: Kernels, oracle: Kernels, benchmark: BenchmarkFixture) -> None:
    """Where to begin to read for an offset."""
    entries = index(10_000)
    assert kernels.search_index(b"", 5) == 0
    for offset in (0, 1, 77, 200_000, 2**32 - 1):
        assert kernels.search_index(entries, offset) == oracle.search_index(entries, offset)
    benchmark(kernels.search_index, entries, 300_000)
