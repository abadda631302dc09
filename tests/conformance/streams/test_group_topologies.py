"""The topology that a member of a streams group sends is that of Kafka Streams, field by field and in its order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from pybroker.streams.application.group_topology import group_topology
from pybroker.streams.application.settings import parse_settings
from pybroker.streams.errors import TopologyError
from pybroker.streams.runtime import commit_metadata
from pybroker.streams.runtime.commit_metadata import CommitMetadata
from tests.support import streams_oracle
from tests.support.java_oracle import JavaOracle
from tests.support.streams_pairs import PAIRED
from tests.support.streams_spec import Plan, configuration
from tests.support.streams_steps import Step
from tests.support.streams_topologies import ALONE

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka streams")]

SETTINGS = {
    "topic.retention.bytes": "1000000",
    "replication.factor": "3",
    "windowstore.changelog.additional.retention.ms": "500",
}
OPTIMIZED = {**SETTINGS, "topology.optimization": "all"}


@pytest.fixture(scope="module")
def oracle() -> Iterator[JavaOracle]:
    with streams_oracle.running() as running:
        yield running


def _as_json(message: Any) -> Any:
    """Return a message as Kafka's JSON converters write it."""
    if isinstance(message, list):
        return [_as_json(item) for item in message]
    if not isinstance(message, msgspec.Struct):
        return message
    fields = {}
    for name in message.__struct_fields__:
        first, *words = name.split("_")
        fields[first + "".join(map(str.capitalize, words))] = _as_json(getattr(message, name))
    return fields


def _ours(topology: list[Step], config: dict[str, str]) -> Any:
    whole = configuration(config)
    settings = parse_settings({**whole, "bootstrap.servers": "localhost:9092"})
    return _as_json(group_topology(Plan().build(topology, whole), settings))


@pytest.mark.parametrize("config", [SETTINGS, OPTIMIZED], ids=["plain", "optimized"])
def test_members_send_the_topology_that_kafka_streams_sends(oracle: JavaOracle, config: dict[str, str]) -> None:
    compared = 0
    for name, topology in {**ALONE, **PAIRED}.items():
        theirs = oracle.query("group", topology=topology, config=config)
        if any("pattern" in step for step in topology):
            with pytest.raises(TopologyError, match="subscribes to the pattern"):
                _ours(topology, config)
        elif "error" not in theirs:
            assert _ours(topology, config) == theirs["topology"], name
            compared += 1
    assert compared > 200


@pytest.mark.parametrize(
    ("time", "numbers"),
    [(-1, {}), (1_700_000_000_000, {}), (5, {"KSTREAM-AGGREGATE-STATE-STORE-0000000001": 77, "é": -3})],
)
def test_committed_metadata_has_kafkas_bytes(oracle: JavaOracle, time: int, numbers: dict[str, int]) -> None:
    text = oracle.query("metadata", time=time, numbers=numbers)["text"]
    assert commit_metadata.decode(text) == CommitMetadata(time, numbers)
    in_kafkas_order = dict(commit_metadata.decode(text).numbers)
    assert commit_metadata.encode(CommitMetadata(time, in_kafkas_order)) == text
