from __future__ import annotations

from typing import Any

import pytest

from pybroker.client import TopicPartition
from pybroker.protocol.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions
from pybroker.protocol.messages.streams_group_heartbeat import TopicPartition as TopicPartitions
from pybroker.streams import (
    STRING,
    UNAVAILABLE,
    HostInfo,
    KeyQueryMetadata,
    StreamsBuilder,
    StreamsError,
    time_windowed,
)
from pybroker.streams.application.metadata import StateLocations, StreamsMetadata, partition_of_key
from pybroker.streams.topology.topology import Topology
from pybroker.streams.windows import Window, Windowed

ONE, TWO = HostInfo("one", 1), HostInfo("two", 2)
KAFKAS_HASHES = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
"""Vectors of Kafka's own test of murmur2 (`UtilsTest.testMurmur2`)."""


def _topology() -> Topology:
    """Return a topology with a count behind a repartition topic, a table and a global table."""
    builder = StreamsBuilder()
    words = builder.stream("lines", key_serde=STRING, value_serde=STRING)
    words.group_by(lambda _, word: word, key_serde=STRING, value_serde=STRING).count(store="counts")
    builder.table("users", key_serde=STRING, value_serde=STRING, store="users-store")
    builder.global_table("names", key_serde=STRING, value_serde=STRING, store="names-store")
    return builder.build()


def _entry(host: HostInfo, active: dict[str, list[int]], standby: dict[str, list[int]]) -> EndpointToPartitions:
    def listed(partitions: dict[str, list[int]]) -> list[TopicPartitions]:
        return [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in partitions.items()]

    return EndpointToPartitions(
        user_endpoint=Endpoint(host=host.host, port=host.port),
        active_partitions=listed(active),
        standby_partitions=listed(standby),
    )


ENTRIES = [
    _entry(TWO, {"app-counts-repartition": [1]}, {"app-counts-repartition": [0]}),
    _entry(ONE, {"app-counts-repartition": [0]}, {}),
    _entry(ONE, {"users": [0]}, {"app-counts-repartition": [1]}),
]
"""Two threads of instance one are two members."""


def _locations(own: HostInfo | None = ONE) -> StateLocations:
    return StateLocations(_topology(), "app", None if own is None else (own.host, own.port))


def test_members_with_one_endpoint_are_one_instance() -> None:
    counts_0, counts_1 = (TopicPartition("app-counts-repartition", index) for index in (0, 1))
    assert _locations().clients(ENTRIES) == [
        StreamsMetadata(
            ONE,
            frozenset({"counts", "users-store", "names-store"}),
            frozenset({counts_0, TopicPartition("users", 0)}),
            frozenset({"counts"}),
            frozenset({counts_1}),
        ),
        StreamsMetadata(
            TWO,
            frozenset({"counts", "names-store"}),
            frozenset({counts_1}),
            frozenset({"counts"}),
            frozenset({counts_0}),
        ),
    ]


def test_instances_are_found_by_store() -> None:
    locations = _locations()
    clients = locations.clients(ENTRIES)
    hosts = {store: [c.host_info for c in locations.clients_of(store, clients)] for store in ("counts", "users-store")}
    assert hosts == {"counts": [ONE, TWO], "users-store": [ONE]}
    assert locations.clients_of("names-store", clients) == clients


def test_a_partition_has_an_active_host_and_standby_hosts() -> None:
    locations = _locations()
    clients = locations.clients(ENTRIES)
    assert locations.of_partition("counts", 1, clients) == KeyQueryMetadata(TWO, frozenset({ONE}), 1)
    assert locations.of_partition("users-store", 0, clients) == KeyQueryMetadata(ONE, frozenset(), 0)
    assert locations.of_partition("users-store", 3, clients) == KeyQueryMetadata(UNAVAILABLE, frozenset(), 3)


@pytest.mark.parametrize(("own", "expected"), [(TWO, TWO), (None, ONE)])
def test_a_global_store_is_queried_at_this_instance(own: HostInfo | None, expected: HostInfo) -> None:
    locations = _locations(own)
    found = locations.of_global_store(locations.clients(ENTRIES))
    assert found == KeyQueryMetadata(expected, frozenset(), -1)


@pytest.mark.parametrize("key", KAFKAS_HASHES)
def test_a_key_is_in_the_partition_of_kafkas_partitioner(key: str) -> None:
    expected = (KAFKAS_HASHES[key] & 0x7FFFFFFF) % 7
    assert partition_of_key(key, {"small": 2, "large": 7}, STRING, None) == expected
    assert partition_of_key(key, {"large": 7}, STRING, lambda _topic, _key, _value, _count: None) == expected
    windowed = Windowed(key, Window(0, 10))
    assert partition_of_key(windowed, {"large": 7}, time_windowed(STRING), None) == expected


def test_a_partitioner_receives_the_topic_with_the_most_partitions() -> None:
    called: list[Any] = []

    def last(*arguments: Any) -> set[int]:
        called.append(arguments)
        return {arguments[3] - 1}

    assert partition_of_key("k", {"small": 2, "large": 7}, None, last) == 6
    assert called == [("large", "k", None, 7)]


def test_a_partition_that_cannot_be_computed_is_refused() -> None:
    with pytest.raises(StreamsError, match=r"returned \[0, 1\] for key 'k': expected one partition"):
        partition_of_key("k", {"topic": 2}, None, lambda *_: [0, 1])
    with pytest.raises(StreamsError, match=r"no serde for the key: .* or set default\.key\.serde"):
        partition_of_key("k", {"topic": 2}, None, None)
    with pytest.raises(StreamsError, match="a key of None has no partition"):
        partition_of_key(None, {"topic": 2}, STRING, None)
