"""DescribeCluster, DescribeConfigs, InitProducerId: what clients ask before their main job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import Server, Topic
from tests.support.wire import Wire

TOPIC, BROKER = 2, 4
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REQUEST = 42
DEFAULT_CONFIG, DYNAMIC_TOPIC_CONFIG = 5, 1


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described_in_every_version(wire: Wire, server: Server, version: int) -> None:
    response = wire.call("DescribeCluster", version, include_cluster_authorized_operations=False)
    assert response.error_code == 0
    assert response.cluster_id == wire.call("Metadata", 12, topics=[]).cluster_id
    at = {broker.broker_id: f"{broker.host}:{broker.port}" for broker in response.brokers}
    assert tuple(sorted(at)) == server.brokers
    assert at[server.brokers[0]] == server.bootstrap_servers
    assert response.controller_id in at


def configs_of(wire: Wire, kind: int, name: str, *, version: int = 4, keys: list[str] | None = None) -> Any:
    """One resource's part of a DescribeConfigs answer."""
    response = wire.call(
        "DescribeConfigs",
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configuration_keys": keys}],
        include_synonyms=True,
        include_documentation=True,
    )
    return response.results[0]


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topics_configuration_shows_value_and_source(wire: Wire, create: Callable[..., Topic], version: int) -> None:
    topic = create(**{"retention.ms": "12345"})
    found = configs_of(wire, TOPIC, topic.name, version=version)
    entries = {entry.name: entry for entry in found.configs}
    assert found.error_code == 0
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("12345", DYNAMIC_TOPIC_CONFIG)
    assert (entries["segment.bytes"].value, entries["segment.bytes"].config_source) == ("1073741824", DEFAULT_CONFIG)
    assert len(entries) > 25
    if version >= 3:
        assert entries["retention.ms"].config_type == 5
        assert entries["retention.ms"].documentation


def test_only_the_keys_asked_for_are_returned(wire: Wire, topic: Topic) -> None:
    found = configs_of(wire, TOPIC, topic.name, keys=["retention.ms", "no.such.key"])
    assert [entry.name for entry in found.configs] == ["retention.ms"]


def test_an_unknown_topic_and_an_unknown_broker_get_an_error(wire: Wire) -> None:
    assert configs_of(wire, TOPIC, "no-such-topic").error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert configs_of(wire, BROKER, "77").error_code == INVALID_REQUEST
    assert configs_of(wire, BROKER, "seven").error_code == INVALID_REQUEST


def test_the_brokers_configuration_is_described(wire: Wire) -> None:
    node = wire.call("Metadata", 12, topics=[]).brokers[0].node_id
    entries = {entry.name: entry for entry in configs_of(wire, BROKER, str(node)).configs}
    assert entries["num.network.threads"].value
    assert entries["log.dirs"].value
    assert entries["node.id"].value == str(node)


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_a_producer_id(wire: Wire, version: int) -> None:
    given = wire.call("InitProducerId", version, transactional_id=None, transaction_timeout_ms=60_000)
    assert (given.error_code, given.producer_epoch) == (0, 0)
    assert given.producer_id >= 0
