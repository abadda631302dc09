"""Clients receive the endpoints of the listener that they came by, whatever they ask."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from pybroker.handlers.context import BrokerContext, RequestContext
from pybroker.handlers.topic_metadata import BrokerAddress, brokers_shown, controller_shown
from pybroker.metadata.image import BrokerRegistration, ClusterImage
from pybroker.testing import Broker
from tests.support.wire import Wire


@pytest.fixture(scope="module")
def addresses() -> Iterator[list[str]]:
    """Where a broker of three listeners is reached: two that advertise what the client dialled, one with a name."""
    with Broker(
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,NAMED://127.0.0.1:0",
        advertised_listeners="NAMED://broker.example:19092",
        inter_broker_listener_name="INSIDE",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,NAMED:PLAINTEXT",
        offsets_topic_num_partitions=1,
    ) as broker:
        yield broker.bootstrap_servers.split(",")


def requested(wire: Wire) -> dict[str, set[str]]:
    """The addresses that each API answers with which names brokers."""
    metadata = wire.call("Metadata", 12, topics=[]).brokers
    cluster = wire.call("DescribeCluster", 1, endpoint_type=1).brokers
    one = wire.call("FindCoordinator", 3, key="g", key_type=0)
    many = wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=["g", "h"]).coordinators
    quorum = wire.call(
        "DescribeQuorum", 2, topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    )
    found = {
        "Metadata": metadata,
        "DescribeCluster": cluster,
        "FindCoordinator of one": [one],
        "FindCoordinator of many": many,
        "DescribeQuorum": [listener for node in quorum.nodes for listener in node.listeners],
    }
    return {name: {f"{broker.host}:{broker.port}" for broker in brokers} for name, brokers in found.items()}


@pytest.mark.parametrize("number", range(3), ids=["INSIDE", "OUTSIDE", "NAMED"])
def test_every_answer_names_the_endpoint_of_the_requests_listener(addresses: list[str], number: int) -> None:
    expected = "broker.example:19092" if number == 2 else addresses[number]
    with Wire(addresses[number]) as wire:
        responses = requested(wire)
    assert responses == {name: {expected} for name in responses}


@pytest.mark.parametrize(("leader", "shown"), [(-1, -1), (2, 2), (3, 1)], ids=["none", "a broker", "no broker"])
def test_changes_go_to_the_active_controller_where_clients_reach_it_else_to_this_broker(
    leader: int, shown: int
) -> None:
    services = SimpleNamespace(controller=SimpleNamespace(leader_id=leader), config=SimpleNamespace(node_id=1))
    addresses = [BrokerAddress(number, "127.0.0.1", 9091 + number, None, fenced=False) for number in (1, 2)]
    context = cast(RequestContext, SimpleNamespace(services=services))
    assert controller_shown(context, addresses) == shown


@pytest.mark.parametrize(
    ("fenced", "dead", "named"),
    [([], [], [1, 2]), ([1], [], [2]), ([2], [2], [1, 2]), ([1, 2], [], [1]), ([1, 2], [2], [1])],
)
def test_an_answer_names_a_broker_also_where_all_are_fenced(
    fenced: list[int], dead: list[int], named: list[int]
) -> None:
    registered = {
        number: BrokerRegistration(
            number, bytes(16), number, {"PLAINTEXT": (f"host{number}", 9092)}, {}, fenced=number in fenced
        )
        for number in (1, 2)
    }
    context = SimpleNamespace(
        services=SimpleNamespace(
            config=SimpleNamespace(node_id=1),
            advertised={"PLAINTEXT": ("host1", 9092)},
            failed_brokers=SimpleNamespace(is_named=lambda broker: broker.id in dead),
        ),
        image=SimpleNamespace(cluster=ClusterImage(registered)),
        listener="PLAINTEXT",
    )
    assert [broker.node_id for broker in brokers_shown(cast(BrokerContext, context))] == named
