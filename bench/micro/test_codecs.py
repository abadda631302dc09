"""Batches of each codec, built and checked by kafka-python, by aiokafka's Cython and by the broker's Rust.

Run: `make micro`.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from micro.codecs import CODECS, PEERS, VALUES, build, check


@pytest.fixture(params=CODECS)
def codec(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> str:
    """One codec; its rows stand together."""
    for library in ("kafka", "aiokafka"):
        pytest.importorskip(f"{library}.record.default_records")
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
