"""Records of every operation, and of pairs of operations, equal those of Kafka's TopologyTestDriver.

All topics are compared: outputs, repartition topics and changelogs, with keys, values, timestamps and headers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import streams_oracle
from tests.support.java_oracle import JavaOracle
from tests.support.streams_inputs import random_inputs, topics_of
from tests.support.streams_pairs import PAIRED
from tests.support.streams_steps import Step
from tests.support.streams_topologies import ALONE

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka streams")]

CACHES = {"with_cache": {}, "without_cache": {"statestore.cache.max.bytes": "0"}}


@pytest.fixture(scope="module")
def oracle() -> Iterator[JavaOracle]:
    with streams_oracle.running() as running:
        yield running


def check_topology(
    oracle: JavaOracle, name: str, topology: list[Step], config: dict[str, str], state_dir: str | None = None
) -> None:
    """Compare a topology over records that its name seeds."""
    inputs = random_inputs(random.Random(name), topics_of(topology))
    theirs = streams_oracle.check_outputs(oracle, topology, config, inputs, state_dir)
    # A buffer that is full stops the run of both at the same input.
    assert "error" not in theirs or "failed_at" in theirs, f"{name}: Kafka rejects it: {theirs.get('message')}"


@pytest.mark.parametrize("config", CACHES.values(), ids=CACHES)
@pytest.mark.parametrize("name", ALONE)
def test_each_operation_produces_what_kafka_produces(oracle: JavaOracle, name: str, config: dict[str, str]) -> None:
    check_topology(oracle, name, ALONE[name], config)


@pytest.mark.parametrize("config", CACHES.values(), ids=CACHES)
def test_pairs_of_operations_produce_what_kafka_produces(oracle: JavaOracle, config: dict[str, str]) -> None:
    for name, topology in PAIRED.items():
        check_topology(oracle, name, topology, config)


@pytest.mark.parametrize("config", CACHES.values(), ids=CACHES)
def test_persistent_stores_produce_what_kafka_produces(
    oracle: JavaOracle, config: dict[str, str], tmp_path: Path
) -> None:
    for name, topology in ALONE.items():
        check_topology(oracle, name, topology, config, str(tmp_path))
    assert list((tmp_path / "oracle").iterdir()), "the stores were in this directory"


def test_optimized_topologies_produce_what_kafka_produces(oracle: JavaOracle) -> None:
    for name, topology in {**ALONE, **PAIRED}.items():
        check_topology(oracle, name, topology, {"topology.optimization": "all"})
