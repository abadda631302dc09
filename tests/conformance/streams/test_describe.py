"""Descriptions of topologies equal those of Apache Kafka: node names, counters, order and optimisations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import streams_oracle
from tests.support.java_oracle import JavaOracle
from tests.support.streams_pairs import PAIRED, with_group_names, with_names
from tests.support.streams_topologies import ALONE

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka streams")]

TOPOLOGIES = {**ALONE, **{f"pair_{name}": topology for name, topology in PAIRED.items()}}


@pytest.fixture(scope="module")
def oracle() -> Iterator[JavaOracle]:
    with streams_oracle.running() as running:
        yield running


@pytest.mark.parametrize("optimization", ["none", "all"])
def test_descriptions_equal_kafkas(oracle: JavaOracle, optimization: str) -> None:
    for topology in TOPOLOGIES.values():
        streams_oracle.check_description(oracle, topology, {"topology.optimization": optimization})


@pytest.mark.parametrize("optimization", ["none", "all"])
def test_descriptions_with_given_names_equal_kafkas(oracle: JavaOracle, optimization: str) -> None:
    for topology in TOPOLOGIES.values():
        for named in (with_names(topology), with_group_names(topology)):
            streams_oracle.check_description(oracle, named, {"topology.optimization": optimization})


@pytest.mark.parametrize(
    "optimization", ["reuse.ktable.source.topics", "single.store.self.join,merge.repartition.topics"]
)
def test_single_optimizations_equal_kafkas(oracle: JavaOracle, optimization: str) -> None:
    for topology in TOPOLOGIES.values():
        streams_oracle.check_description(oracle, topology, {"topology.optimization": optimization})
