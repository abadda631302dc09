"""Peers that lie to a cluster of three processes get an error each, and change nothing."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest

from pybroker.client import Admin, NewTopic
from pybroker.client.administration.topics import LATEST, TopicPartition
from pybroker.client.network.connection import Connection
from pybroker.client.settings import AdminSettings
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import skip_tagged
from pybroker.protocol.messages import alter_partition, broker_heartbeat, broker_registration, envelope, fetch
from pybroker.protocol.messages.default_principal_data import DefaultPrincipalData
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest, RaftMessagesResponse
from pybroker.storage.log_dirs.meta_properties import read_meta_properties
from pybroker.testing import Cluster
from tests.support.conditions import wait_until
from tests.support.wire import Wire, header

pytestmark = pytest.mark.process

TOPIC = "kept"
STRANGER = 77
CREATE_TOPICS = 19
_MALFORMED = (b"\xff" * 100, b"", b"\x00" * 50, b"\x7f" * 10_000)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A pause of this machine fences nobody: what changes here was changed by a lie.
    with Cluster(brokers=3, broker_session_timeout_ms=600_000, replica_lag_time_max_ms=600_000) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 1, 2)])
            admin.wait_for_leaders(TOPIC)
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        producer.produce(TOPIC, b"record")
        assert producer.flush(60) == 0
        cluster.wait_in_sync(TOPIC)
        yield cluster


class State(NamedTuple):
    """What a lie could change."""

    controller: int
    brokers: frozenset[int]
    partition: Any
    end: int


def state_of(cluster: Cluster) -> State:
    with Admin(cluster.bootstrap_servers) as admin:
        described = admin.describe_cluster()
        (topic,) = admin.describe_topics([TOPIC])
        where = TopicPartition(TOPIC, 0)
        end = admin.list_offsets({where: LATEST})[where].offset
    brokers = frozenset(broker.node_id for broker in described.brokers)
    return State(described.controller_id, brokers, topic.partitions[0], end)


def topic_id(cluster: Cluster) -> bytes:
    with Admin(cluster.bootstrap_servers) as admin:
        return admin.describe_topics([TOPIC])[0].topic_id


def controller_address(cluster: Cluster) -> str:
    node = cluster._local.node(cluster.controller())
    return f"{node.ports.host}:{node.ports.controller}"


def query(address: str, request: Any, response: Any) -> Any:
    """Send a request on a connection of its own and return the answer."""

    async def once() -> Any:
        settings = AdminSettings.from_properties({"bootstrap.servers": address})
        connection = await Connection.open(address, settings)
        try:
            return await asyncio.wait_for(connection.query(request, response), 60)
        finally:
            await connection.close()

    return asyncio.run(once())


@pytest.fixture(autouse=True)
def nothing_changes(cluster: Cluster) -> Iterator[None]:
    before = state_of(cluster)
    yield
    assert state_of(cluster) == before
    assert cluster.running == cluster.brokers


def directory_id(cluster: Cluster, node: int) -> bytes:
    meta = read_meta_properties(Path(cluster._local.node(node).data))
    assert meta is not None
    return _uuid(meta.directory_id)


def _uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def test_raft_messages_of_another_cluster_or_of_no_voter_are_refused(cluster: Cluster) -> None:
    leader = cluster.controller()
    voter = next(node for node in cluster.brokers if node != leader)
    true = RaftMessagesRequest(
        cluster_id=cluster.cluster_id, from_id=voter, from_directory_id=directory_id(cluster, voter), to_id=leader
    )
    lies: list[tuple[dict[str, Any], ErrorCode]] = [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"from_id": STRANGER}, ErrorCode.INVALID_VOTER_KEY),
        ({"to_id": STRANGER}, ErrorCode.INVALID_VOTER_KEY),
    ]
    for changed, expected in lies:
        fields = {name: getattr(true, name) for name in RaftMessagesRequest.__struct_fields__} | changed
        response = query(controller_address(cluster), RaftMessagesRequest(**fields), RaftMessagesResponse)
        assert ErrorCode(response.error_code) == expected


@pytest.mark.parametrize("message", _MALFORMED, ids=["ones", "empty", "zeros", "long"])
def test_malformed_raft_messages_are_refused(cluster: Cluster, message: bytes) -> None:
    leader = cluster.controller()
    voter = next(node for node in cluster.brokers if node != leader)
    request = RaftMessagesRequest(
        cluster_id=cluster.cluster_id,
        from_id=voter,
        from_directory_id=directory_id(cluster, voter),
        to_id=leader,
        messages=[message],
    )
    response = query(controller_address(cluster), request, RaftMessagesResponse)
    assert ErrorCode(response.error_code) == ErrorCode.INVALID_REQUEST


def test_raft_messages_of_another_version_are_answered_with_an_error_that_names_it(cluster: Cluster) -> None:
    leader = cluster.controller()
    with Wire(controller_address(cluster)) as wire:
        wire.send_frame(header(10001, 7, 1, b"voter-9", flexible=True) + bytes(20))
        body = wire.read_frame()
    assert body[:4] == (1).to_bytes(4, "big"), "the correlation id"
    response, _ = decode(RaftMessagesResponse, body, 0, skip_tagged(body, 4))
    assert ErrorCode(response.error_code) == ErrorCode.UNSUPPORTED_VERSION
    reported = (
        "voter-9 at 127.0.0.1 sends messages of the metadata quorum in version 7; this node supports versions 0 to 0"
    )
    wait_until(lambda: reported in cluster.log(leader), within=60, what="the log names both versions")


def test_a_forwarded_request_of_another_version_is_answered_with_unsupported_version(cluster: Cluster) -> None:
    request = envelope.EnvelopeRequest(
        request_data=header(CREATE_TOPICS, 99, 1, flexible=True),
        request_principal=bytes(2) + encode(DefaultPrincipalData(type="User", name="ANONYMOUS"), 0),
        client_host_address=bytes(4),
    )
    response = query(controller_address(cluster), request, envelope.EnvelopeResponse)
    assert ErrorCode(response.error_code) == ErrorCode.UNSUPPORTED_VERSION


def test_a_frame_that_is_too_large_for_the_controller_ends_the_connection(cluster: Cluster) -> None:
    with Wire(controller_address(cluster)) as wire:
        wire.send_bytes((0x7FFF_FFFF).to_bytes(4, "big") + header(10001, 0, 1, flexible=True))
        assert wire.is_closed_by_peer()


def test_a_fetch_as_a_follower_that_is_no_replica_is_refused(cluster: Cluster) -> None:
    described = state_of(cluster).partition
    (bystander,) = set(cluster.brokers) - set(described.replicas)
    wanted = fetch.FetchTopic(
        topic_id=topic_id(cluster),
        partitions=[fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
    )
    for node in (bystander, STRANGER):
        request = fetch.FetchRequest(
            replica_state=fetch.ReplicaState(replica_id=node, replica_epoch=1), max_wait_ms=0, topics=[wanted]
        )
        response = query(cluster.address(described.leader), request, fetch.FetchResponse)
        codes = {one.error_code for topic in response.responses for one in topic.partitions} or {response.error_code}
        assert 0 not in codes


def test_changes_of_in_sync_replicas_by_stale_or_unknown_brokers_are_refused(cluster: Cluster) -> None:
    described = state_of(cluster).partition
    data = alter_partition.PartitionData(
        partition_index=0,
        leader_epoch=described.leader_epoch,
        new_isr_with_epochs=[alter_partition.BrokerState(broker_id=described.leader)],
    )
    topics = [alter_partition.TopicData(topic_id=topic_id(cluster), partitions=[data])]
    for broker, epoch in ((described.leader, 0), (described.leader, 1 << 60), (STRANGER, 1)):
        request = alter_partition.AlterPartitionRequest(broker_id=broker, broker_epoch=epoch, topics=topics)
        response = query(controller_address(cluster), request, alter_partition.AlterPartitionResponse)
        assert response.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)


def test_heartbeats_and_registrations_that_lie_are_refused(cluster: Cluster) -> None:
    address = controller_address(cluster)
    for broker, epoch in ((1, 1 << 60), (STRANGER, 1)):
        beat = broker_heartbeat.BrokerHeartbeatRequest(broker_id=broker, broker_epoch=epoch, want_shut_down=True)
        response = query(address, beat, broker_heartbeat.BrokerHeartbeatResponse)
        assert response.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)
    for cluster_id, expected in (
        ("another", ErrorCode.INCONSISTENT_CLUSTER_ID),
        (cluster.cluster_id, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
    ):
        registration = broker_registration.BrokerRegistrationRequest(
            broker_id=1, cluster_id=cluster_id, incarnation_id=b"\x01" * 16, log_dirs=[b"\x05" * 16]
        )
        response = query(address, registration, broker_registration.BrokerRegistrationResponse)
        assert ErrorCode(response.error_code) == expected


def test_envelopes_of_garbage_and_of_envelopes_are_refused(cluster: Cluster) -> None:
    nested = header(58, 0, 1, flexible=True) + b"\x01\x00\x01\x00"
    for inside in (b"", b"\xff", b"\x00" * 30, b"\xff" * 5000, nested, header(1, 12, 1, flexible=True)):
        request = envelope.EnvelopeRequest(request_data=inside, client_host_address=bytes(4))
        try:
            response = query(controller_address(cluster), request, envelope.EnvelopeResponse)
        except Exception as error:  # noqa: BLE001  # a connection that ends is a refusal as well
            assert not isinstance(error, TimeoutError), f"no answer to {inside[:30]!r}"  # noqa: PT017
            continue
        assert response.error_code != 0
