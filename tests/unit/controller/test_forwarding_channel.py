from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from pybroker.controller.cluster.events import HeartbeatResult, RegisteredBroker, Result
from pybroker.controller.errors import ControllerError, NotControllerError, StaleBrokerEpochError
from pybroker.controller.forwarding_channel import ForwardingChannel, Patience
from pybroker.controller.switching_channel import SwitchingChannel
from pybroker.metadata.in_sync import InSyncChange, InSyncResult
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import RequestHeader
from pybroker.protocol.messages import (
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    broker_registration,
    controller_registration,
    create_topics,
    envelope,
)
from pybroker.protocol.messages import broker_heartbeat as beat
from pybroker.protocol.messages.default_principal_data import DefaultPrincipalData
from pybroker.protocol.schema import Message

TOPIC = b"t" * 16
DIRECTORY = b"d" * 16


class Wire:
    """A channel that a test answers, by the request's class; requests are encoded and decoded in between."""

    def __init__(self) -> None:
        self.responses: dict[type[Message], Callable[[Any], Message]] = {}
        self.sent: list[Any] = []
        self.timeouts: list[int] = []

    async def send(self, request: Message, response: type[Any], *, timeout_ms: int) -> Any:
        version = type(request).__message__.versions.last
        read, _ = decode(type(request), encode(request, version), version)
        self.sent.append(read)
        self.timeouts.append(timeout_ms)
        reply = self.responses[type(request)](read)
        return decode(response, encode(reply, version), version)[0]


class Broker:
    """Broker 3 with epoch 17, of which the metadata is at offset 40."""

    def __init__(self) -> None:
        self.heartbeats, self.requests = Wire(), Wire()
        self.published: list[int] = []
        self.channel = ForwardingChannel(
            "cluster",
            self.heartbeats,
            self.requests,
            Patience(heartbeat_ms=4500, request_ms=60_000),
            metadata_offset=lambda: 40,
            published=self._publish,
        )

    async def _publish(self, offset: int) -> None:
        self.published.append(offset)


@pytest.fixture
def broker() -> Broker:
    return Broker()


async def test_a_registration_says_where_the_broker_is_and_what_it_has(broker: Broker) -> None:
    broker.heartbeats.responses = {
        broker_registration.BrokerRegistrationRequest: lambda _: broker_registration.BrokerRegistrationResponse(
            broker_epoch=17
        )
    }
    registered = await broker.channel.register_broker(
        3,
        incarnation_id=b"i" * 16,
        listeners={"PLAINTEXT": ("h", 9092), "INNER": ("i", 9093)},
        security_protocols={"PLAINTEXT": 0, "INNER": 0},
        rack="r",
        log_dirs=(DIRECTORY,),
        features={"metadata.version": (7, 29)},
    )
    assert registered == RegisteredBroker(broker_epoch=17)
    (sent,) = broker.heartbeats.sent
    assert (sent.broker_id, sent.cluster_id, sent.incarnation_id, sent.rack) == (3, "cluster", b"i" * 16, "r")
    assert [(it.name, it.host, it.port) for it in sent.listeners] == [("PLAINTEXT", "h", 9092), ("INNER", "i", 9093)]
    assert [(it.name, it.max_supported_version) for it in sent.features] == [("metadata.version", 29)]
    assert sent.log_dirs == [DIRECTORY]


async def test_a_refused_registration_says_why(broker: Broker) -> None:
    code = ErrorCode.DUPLICATE_BROKER_REGISTRATION
    broker.heartbeats.responses = {
        broker_registration.BrokerRegistrationRequest: lambda _: broker_registration.BrokerRegistrationResponse(
            error_code=code
        )
    }
    refused = await broker.channel.register_broker(3, incarnation_id=b"i" * 16, listeners={}, security_protocols={})
    assert (refused.error_code, refused.error_message) == (code, code.message)
    with pytest.raises(ControllerError, match="unfenced"):
        await broker.channel.register_broker(
            3, incarnation_id=b"i" * 16, listeners={}, security_protocols={}, fenced=False
        )


async def test_a_heartbeat_says_how_far_the_metadata_is_and_what_is_wanted(broker: Broker) -> None:
    broker.heartbeats.responses = {
        beat.BrokerHeartbeatRequest: lambda _: beat.BrokerHeartbeatResponse(is_fenced=False, should_shut_down=True)
    }
    response = await broker.channel.heartbeat(3, 17, want_shut_down=True)
    assert response == HeartbeatResult(is_fenced=False, should_shut_down=True)
    (sent,) = broker.heartbeats.sent
    assert (sent.broker_id, sent.broker_epoch, sent.current_metadata_offset) == (3, 17, 40)
    assert (sent.want_fence, sent.want_shut_down) == (False, True)
    assert broker.heartbeats.timeouts == [4500]


async def test_failed_directories_are_in_every_heartbeat_from_then_on(broker: Broker) -> None:
    broker.heartbeats.responses = {beat.BrokerHeartbeatRequest: lambda _: beat.BrokerHeartbeatResponse()}
    await broker.channel.heartbeat(3, 17, want_fence=True)
    assert await broker.channel.fail_log_directories(3, 17, [DIRECTORY]) == Result()
    await broker.channel.fail_log_directories(3, 17, [DIRECTORY])
    await broker.channel.heartbeat(3, 17)
    assert [it.offline_log_dirs for it in broker.heartbeats.sent] == [[], [DIRECTORY], [DIRECTORY], [DIRECTORY]]
    assert [it.want_fence for it in broker.heartbeats.sent] == [True, True, True, False]


async def test_many_placements_are_several_requests(broker: Broker) -> None:
    broker.requests.responses = {
        assign_replicas_to_dirs.AssignReplicasToDirsRequest: lambda _: (
            assign_replicas_to_dirs.AssignReplicasToDirsResponse()
        )
    }
    placements = {(TOPIC, partition): DIRECTORY for partition in range(2001)}
    assert await broker.channel.assign_replicas(3, 17, placements) == Result()
    counts = [len(it.directories[0].topics[0].partitions) for it in broker.requests.sent]
    assert counts == [2000, 1]
    assert broker.requests.sent[0].directories[0].id == DIRECTORY


async def test_a_block_of_producer_ids_is_a_range(broker: Broker) -> None:
    kind, response = allocate_producer_ids.AllocateProducerIdsRequest, allocate_producer_ids.AllocateProducerIdsResponse
    broker.requests.responses = {kind: lambda _: response(producer_id_start=1000, producer_id_len=1000)}
    assert await broker.channel.allocate_producer_ids(3, 17) == range(1000, 2000)
    broker.requests.responses = {kind: lambda _: response(error_code=ErrorCode.STALE_BROKER_EPOCH)}
    with pytest.raises(StaleBrokerEpochError, match="epoch 17 of broker 3"):
        await broker.channel.allocate_producer_ids(3, 17)
    broker.requests.responses = {kind: lambda _: response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)}
    with pytest.raises(ControllerError, match="UNKNOWN_SERVER_ERROR"):
        await broker.channel.allocate_producer_ids(3, 17)


async def test_changes_of_in_sync_replicas_are_answered_in_their_order(broker: Broker) -> None:
    changes = [
        InSyncChange(TOPIC, 1, 5, 6, ((3, 17), (4, -1))),
        InSyncChange(b"u" * 16, 0, 1, 1, ((3, 17),)),
        InSyncChange(TOPIC, 0, 5, 6, ((3, 17),), 1),
    ]
    done = alter_partition.AlteredPartitionData(
        partition_index=0, leader_id=3, leader_epoch=5, isr=[3], leader_recovery_state=1, partition_epoch=7
    )
    fenced = alter_partition.AlteredPartitionData(partition_index=1, error_code=ErrorCode.FENCED_LEADER_EPOCH)
    response = alter_partition.AlterPartitionResponse(
        topics=[alter_partition.AlteredTopicData(topic_id=TOPIC, partitions=[done, fenced])]
    )
    broker.requests.responses = {alter_partition.AlterPartitionRequest: lambda _: response}
    results = await broker.channel.alter_partitions(3, 17, changes)
    assert [it.error_code.name for it in results] == ["FENCED_LEADER_EPOCH", "UNKNOWN_SERVER_ERROR", "NONE"]
    assert results[2] == InSyncResult(TOPIC, 0, ErrorCode.NONE, 3, 5, (3,), 1, 7)
    (sent,) = broker.requests.sent
    first, _ = sent.topics
    assert [(it.broker_id, it.broker_epoch) for it in first.partitions[0].new_isr_with_epochs] == [(3, 17), (4, -1)]


async def test_a_refused_broker_is_refused_for_each_change(broker: Broker) -> None:
    response = alter_partition.AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    broker.requests.responses = {alter_partition.AlterPartitionRequest: lambda _: response}
    (result,) = await broker.channel.alter_partitions(3, 17, [InSyncChange(TOPIC, 1, 5, 6, ((3, 17),))])
    assert result == InSyncResult(TOPIC, 1, ErrorCode.STALE_BROKER_EPOCH)


def create(request: envelope.EnvelopeRequest) -> envelope.EnvelopeResponse:
    """The controller's end of an envelope with CreateTopics."""
    header, start = decode(RequestHeader, request.request_data, 2)
    requested, _ = decode(create_topics.CreateTopicsRequest, request.request_data, header.request_api_version, start)
    principal, _ = decode(DefaultPrincipalData, request.request_principal or b"", 0, 2)
    assert (principal.type, principal.name) == ("", ""), "the broker's own"
    (topic,) = requested.topics
    made = create_topics.CreatableTopicResult(
        name=topic.name, topic_id=TOPIC, num_partitions=topic.num_partitions, replication_factor=1
    )
    response = create_topics.CreateTopicsResponse(topics=[made])
    data = struct.pack(">i", header.correlation_id) + b"\x00" + encode(response, header.request_api_version)
    return envelope.EnvelopeResponse(response_data=data, committed_offset=77)


async def test_a_topic_that_a_broker_needs_is_there_when_it_is_answered(broker: Broker) -> None:
    broker.requests.responses = {envelope.EnvelopeRequest: create}
    topic = create_topics.CreatableTopic(name="__consumer_offsets", num_partitions=50, replication_factor=1)
    (created,) = await broker.channel.create_topics([topic])
    assert (created.name, created.error_code, created.num_partitions) == ("__consumer_offsets", 0, 50)
    assert created.topic_id == TOPIC
    assert broker.published == [77]


async def test_an_envelope_that_is_refused_is_an_error(broker: Broker) -> None:
    refusal = envelope.EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    broker.requests.responses = {envelope.EnvelopeRequest: lambda _: refusal}
    with pytest.raises(ControllerError, match=r"API 19 .*: error 31"):
        await broker.channel.create_topics([create_topics.CreatableTopic(name="t")])


async def test_a_controller_registers_too(broker: Broker) -> None:
    kind, response = (
        controller_registration.ControllerRegistrationRequest,
        controller_registration.ControllerRegistrationResponse,
    )
    broker.requests.responses = {kind: lambda _: response(error_code=0, error_message=None)}
    result = await broker.channel.register_controller(
        3, incarnation_id=b"i" * 16, listeners={"C": ("h", 1)}, security_protocols={"C": 0}, features={"f": (0, 1)}
    )
    assert result == Result()
    (sent,) = broker.requests.sent
    assert (sent.controller_id, [it.port for it in sent.listeners]) == (3, [1])


class Local:
    """This node's own controller, which may lose its office while it decides."""

    def __init__(self) -> None:
        self.resigns = False

    async def heartbeat(self, *_: object, **__: object) -> str:
        if self.resigns:
            raise NotControllerError("another was elected")
        return "here"

    async def delete_topics(self, _: object) -> str:
        return "here"


class Remote:
    async def heartbeat(self, *_: object, **__: object) -> str:
        return "there"


async def test_a_node_that_leads_asks_itself_and_another_otherwise() -> None:
    local, remote, leads = Local(), Remote(), [True]
    channel: Any = SwitchingChannel(local, remote, lambda: 1, lambda: leads[0])  # type: ignore[arg-type]
    assert await channel.active().heartbeat(1, 1) == "here"
    assert await channel.own().delete_topics([]) == "here"
    local.resigns = True
    assert await channel.active().heartbeat(1, 1) == "there"
    leads[0] = False
    assert await channel.active().heartbeat(1, 1) == "there"
    with pytest.raises(NotControllerError):
        await channel.own().delete_topics([])
