"""What brokers of a cluster and its active controller say to each other, by processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.client.network.connection import Connection
from pybroker.client.settings import AdminSettings
from pybroker.metadata.image import BROKER_RESOURCE
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pybroker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from pybroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pybroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pybroker.testing import Cluster
from tests.support.conditions import wait_until

pytestmark = pytest.mark.process

NEVER_MS = 600_000
"""Longer than any test: what ends a session here is not its time."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, broker_session_timeout_ms=NEVER_MS) as cluster:
        yield cluster


def other_than(cluster: Cluster, node: int) -> int:
    return next(broker for broker in cluster.running if broker != node)


async def test_a_client_sees_what_it_changed_by_way_of_the_broker_that_it_asked(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        address = cluster.address(broker)
        settings = AdminSettings.from_properties({"bootstrap.servers": address})
        connection = await Connection.open(address, settings)  # An Admin asks any broker.
        for number in range(10):
            name = f"t{broker}-{number}"
            creation = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=3)])
            (created,) = (await connection.query(creation, CreateTopicsResponse)).topics
            assert (created.error_code, created.num_partitions) == (0, 2)
            assert await partitions_of(connection, name) == 2
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"t{broker}-0")])
        (deleted,) = (await connection.query(deletion, DeleteTopicsResponse)).responses
        assert deleted.error_code == 0
        assert await partitions_of(connection, f"t{broker}-0") == 0
        await connection.close()


async def partitions_of(connection: Connection, name: str) -> int:
    """How many partitions a topic has, as the broker at the other end sees it."""
    requested = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = (await connection.query(requested, MetadataResponse)).topics
    return len(topic.partitions)


def test_a_broker_that_is_killed_is_fenced_by_its_death_and_may_come_back_at_once(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 6, 3)])
    victim = other_than(cluster, cluster.controller())
    cluster.kill(victim)
    for partition in range(6):
        cluster.wait_for_partition("t", partition, lambda it: it.leader not in (victim, -1))
    cluster.start(victim)
    with Admin(cluster.bootstrap_servers) as admin:
        wait_until(
            lambda: victim in {broker.node_id for broker in admin.describe_cluster().brokers},
            within=60,
            what="the broker that came back is known to the others",
        )


def test_a_broker_that_stops_hands_its_leadership_over(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 6, 3)])
    leaving = other_than(cluster, cluster.controller())
    cluster.stop(leaving)
    assert "the controller allows this broker to stop" in cluster.log(leaving)
    for partition in range(6):
        assert cluster.leader("t", partition) != leaving
    cluster.start(leaving)


def test_the_death_of_the_active_controller_costs_forwarded_requests_a_wait(cluster: Cluster) -> None:
    active = cluster.controller()
    with Admin(cluster.address(other_than(cluster, active))) as admin:
        cluster.kill(active)
        admin.create_topics([NewTopic("t", 2, 2)])
        (found,) = admin.describe_topics(["t"])
        assert len(found.partitions) == 2


async def test_settings_of_a_broker_are_taken_by_each_broker_and_of_nobody_by_none(cluster: Cluster) -> None:
    codes = []
    for requested in cluster.brokers:
        address = cluster.address(requested)
        connection = await Connection.open(address, AdminSettings.from_properties({"bootstrap.servers": address}))
        for named in (*cluster.brokers, 99):
            change = AlterConfigsResource(
                resource_type=BROKER_RESOURCE,
                resource_name=str(named),
                configs=[AlterableConfig(name="message.max.bytes", config_operation=0, value=f"{named}{requested}00")],
            )
            response = await connection.query(
                IncrementalAlterConfigsRequest(resources=[change]), IncrementalAlterConfigsResponse
            )
            codes.append((named, response.responses[0].error_code))
        await connection.close()
    assert {code for named, code in codes if named != 99} == {ErrorCode.NONE}
    assert {code for named, code in codes if named == 99} == {ErrorCode.INVALID_REQUEST}
    for broker in cluster.brokers:
        wait_until(
            lambda: f"'message.max.bytes': '{broker}300'" in cluster.log(broker),  # noqa: B023
            within=60,
            what=f"broker {broker} has taken the last change",
        )
