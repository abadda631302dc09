"""What brokers and controllers ask of the active controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybroker.controller.cluster.events import NewTopic
from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import controller_registration as controllers
from pybroker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from pybroker.protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from pybroker.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, DirectoryData
from pybroker.protocol.messages.assign_replicas_to_dirs import PartitionData as PlacedPartition
from pybroker.protocol.messages.assign_replicas_to_dirs import TopicData as PlacedTopic
from pybroker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from pybroker.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from pybroker.protocol.messages.describe_cluster import DescribeClusterRequest
from pybroker.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.support.controller_requests import CLUSTER_ID, Requests
from tests.support.controllers import build, running


def directory(broker_id: int, number: int = 1) -> bytes:
    return bytes([number]) * 15 + bytes([broker_id])


def registration(broker_id: int, /, **changes: Any) -> BrokerRegistrationRequest:
    given: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": bytes([broker_id]) * 16,
        "listeners": [Listener(name="PLAINTEXT", host=f"host{broker_id}", port=9092)],
        "features": [
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        "rack": None,
        "log_dirs": [directory(broker_id), directory(broker_id, 2)],
    }
    return BrokerRegistrationRequest(**given | changes)


async def joined(requests: Requests, broker_id: int) -> int:
    """Register and unfence a broker; its epoch."""
    epoch = (await requests.query(registration(broker_id))).broker_epoch
    beat = await requests.query(
        BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=epoch)
    )
    assert (beat.error_code, beat.is_fenced, beat.is_caught_up) == (0, False, True)
    return int(epoch)


class Detector:
    """Records the calls of a failure detector."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, int, int]] = []

    def note(self, connection: int, broker_id: int, broker_epoch: int) -> None:
        self.noted.append((connection, broker_id, broker_epoch))


async def test_a_broker_is_fenced_until_it_knows_its_registration(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        detector = Detector()
        requests = Requests(one, failure_detector=detector)
        response = await requests.query(registration(2))
        epoch = response.broker_epoch
        assert response.error_code == 0
        assert one.image.cluster.brokers[2].fenced
        for offset, is_fenced in ((epoch - 1, True), (epoch, False)):
            beat = await requests.query(
                BrokerHeartbeatRequest(broker_id=2, broker_epoch=epoch, current_metadata_offset=offset)
            )
            assert (beat.is_fenced, beat.is_caught_up) == (is_fenced, not is_fenced)
        stale = await requests.query(BrokerHeartbeatRequest(broker_id=2, broker_epoch=epoch - 1))
        assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert detector.noted == [(7, 2, epoch)] * 3


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(3)] * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(2)]}, ErrorCode.INVALID_REGISTRATION),
        ({"listeners": []}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
        ({"broker_id": 2, "incarnation_id": b"n" * 16}, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
    ],
)
async def test_a_broker_that_cannot_belong_here_is_refused(
    tmp_path: Path, changes: dict[str, Any], code: ErrorCode
) -> None:
    async with running(tmp_path) as one:
        requests = Requests(one)
        await joined(requests, 2)
        before = one.image.cluster
        response = await requests.query(registration(3, **changes))
        assert (response.error_code, response.broker_epoch) == (code, -1)
        assert one.image.cluster == before


async def test_in_sync_replicas_change_as_the_leader_asks(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        requests = Requests(one)
        epochs = {broker_id: await joined(requests, broker_id) for broker_id in (2, 3)}
        [topic] = await one.channel.create_topics([NewTopic(name="t", num_partitions=1, replication_factor=2)])
        partition = one.image.topics.by_id[topic.topic_id].partitions[0]
        leader = partition.leader
        alone = [BrokerState(broker_id=leader, broker_epoch=epochs[leader])]

        def request(broker_epoch: int, topic_id: bytes = topic.topic_id) -> AlterPartitionRequest:
            change = PartitionData(partition_index=0, leader_epoch=0, partition_epoch=0, new_isr_with_epochs=alone)
            return AlterPartitionRequest(
                broker_id=leader, broker_epoch=broker_epoch, topics=[TopicData(topic_id=topic_id, partitions=[change])]
            )

        stale = await requests.query(request(epochs[leader] - 1))
        assert (stale.error_code, stale.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
        response = await requests.query(request(epochs[leader]))
        [altered] = response.topics[0].partitions
        assert (altered.error_code, altered.isr, altered.partition_epoch) == (0, [leader], 1)
        [again] = (await requests.query(request(epochs[leader]))).topics[0].partitions
        assert again.error_code == ErrorCode.INVALID_UPDATE_VERSION
        [unknown] = (await requests.query(request(epochs[leader], b"u" * 16))).topics[0].partitions
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        older = PartitionData(partition_index=0, leader_epoch=0, partition_epoch=1, new_isr=[leader, 5 - leader])
        in_version_2 = AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=epochs[leader],
            topics=[TopicData(topic_id=topic.topic_id, partitions=[older])],
        )
        [back] = (await requests.query(in_version_2, 2)).topics[0].partitions
        assert sorted(back.isr) == [2, 3]


async def test_a_failed_directory_leads_nothing_and_each_replica_lies_where_its_broker_says(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        requests = Requests(one)
        epoch = await joined(requests, 2)
        [topic] = await one.channel.create_topics([NewTopic(name="t", num_partitions=1, replication_factor=1)])
        response = await requests.query(
            AssignReplicasToDirsRequest(
                broker_id=2,
                broker_epoch=epoch,
                directories=[
                    DirectoryData(
                        id=directory(2),
                        topics=[
                            PlacedTopic(
                                topic_id=topic.topic_id,
                                partitions=[PlacedPartition(partition_index=index) for index in (0, 1)],
                            ),
                            PlacedTopic(topic_id=b"u" * 16, partitions=[PlacedPartition(partition_index=0)]),
                        ],
                    )
                ],
            )
        )
        codes = [one.error_code for some in response.directories[0].topics for one in some.partitions]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
        assert one.image.topics.by_id[topic.topic_id].partitions[0].directories == (directory(2),)
        beat = BrokerHeartbeatRequest(
            broker_id=2, broker_epoch=epoch, current_metadata_offset=epoch, offline_log_dirs=[directory(2)]
        )
        assert (await requests.query(beat)).error_code == 0
        assert one.image.topics.by_id[topic.topic_id].partitions[0].leader == -1
        assert one.image.cluster.brokers[2].log_dirs == (directory(2, 2),)


async def test_producer_ids_and_forgetting(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        requests = Requests(one)
        epoch = await joined(requests, 2)
        ids = [await requests.query(AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch)) for _ in range(2)]
        assert ids[1].producer_id_start - ids[0].producer_id_start == ids[0].producer_id_len == 1000
        stale = await requests.query(AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch - 1))
        assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert (await requests.query(UnregisterBrokerRequest(broker_id=2))).error_code == 0
        assert (await requests.query(UnregisterBrokerRequest(broker_id=2))).error_code == (
            ErrorCode.BROKER_ID_NOT_REGISTERED
        )


async def test_controllers_are_described_where_controllers_listen(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        requests = Requests(one)
        listeners = [controllers.Listener(name="CONTROLLER", host="h", port=9093)]
        request = controllers.ControllerRegistrationRequest(
            controller_id=1, incarnation_id=b"c" * 16, listeners=listeners
        )
        assert (await requests.query(request)).error_code == 0
        offset = one.image.offset
        assert (await requests.query(request)).error_code == 0
        assert one.image.offset == offset, "what is as it was writes nothing"
        response = await requests.query(DescribeClusterRequest(endpoint_type=2))
        assert (response.error_code, response.controller_id, response.endpoint_type) == (0, 1, 2)
        assert [(node.broker_id, node.host, node.port) for node in response.brokers] == [(1, "h", 9093)]
        mismatch = await requests.query(DescribeClusterRequest(endpoint_type=1))
        assert mismatch.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
        assert (await requests.query(DescribeClusterRequest(endpoint_type=3))).error_code == (
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        )
        request.listeners = []
        assert (await requests.query(request)).error_code == ErrorCode.INVALID_REGISTRATION


async def test_a_node_that_does_not_lead_answers_not_controller(tmp_path: Path) -> None:
    one = build(tmp_path)
    await one.controller.open()
    try:
        requests = Requests(one)
        for request in (
            registration(2),
            BrokerHeartbeatRequest(broker_id=2),
            AllocateProducerIdsRequest(broker_id=2),
            UnregisterBrokerRequest(broker_id=2),
            AlterPartitionRequest(
                broker_id=2, topics=[TopicData(topic_id=b"t" * 16, partitions=[PartitionData(partition_index=0)])]
            ),
        ):
            assert (await requests.query(request)).error_code == ErrorCode.NOT_CONTROLLER
    finally:
        await one.controller.stop()
