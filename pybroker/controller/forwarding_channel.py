"""Requests of a broker to a controller in another process: the methods of `LocalChannel` as Kafka requests.

Owns the conversion to requests and from responses. Must not know where the active controller is:
`pybroker/controller/node_to_controller.py` finds it. `pybroker/net/forwarding.py` forwards client requests.

A heartbeat times out after half a broker session, as with Kafka; all other requests have the timeout of `Patience`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from pybroker.controller.cluster.events import CreatedTopic, HeartbeatResult, RegisteredBroker, Result
from pybroker.controller.envelopes import build_envelope, open_response
from pybroker.controller.errors import ControllerError, StaleBrokerEpochError
from pybroker.metadata.in_sync import InSyncResult
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import RequestHeader, response_prefix
from pybroker.protocol.messages import alter_partition as in_sync
from pybroker.protocol.messages import assign_replicas_to_dirs as placed
from pybroker.protocol.messages import broker_registration as broker
from pybroker.protocol.messages import controller_registration as controller
from pybroker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pybroker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from pybroker.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from pybroker.protocol.messages.envelope import EnvelopeResponse
from pybroker.protocol.schema import Message
from pybroker.security.principals import SENDER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from pybroker.controller.cluster.events import NewTopic
    from pybroker.metadata.in_sync import InSyncChange

Response = TypeVar("Response", bound=Message)

_MOST_ASSIGNMENTS = 2000
"""Maximum number of replicas in one AssignReplicasToDirs request: the report of a large broker is split."""
_NEWEST_CREATION = CreateTopicsRequest.__message__.versions.last
_OWN_ADDRESS = "127.0.0.1"
"""The client address in envelopes of requests that the broker itself sends."""


class Channel(Protocol):
    """A channel to the active controller, on any node."""

    async def send(self, request: Message, response: type[Response], *, timeout_ms: int) -> Response:
        """Return the active controller's response; raises a `ControllerError` when none arrives in time."""


class Patience(msgspec.Struct, frozen=True):
    """How long requests to the active controller are retried."""

    heartbeat_ms: int
    """For a registration and a heartbeat. The broker then sends a new one with current values."""
    request_ms: int
    """For all other requests."""


class ForwardingChannel:
    """Sends the broker's own requests to the active controller. Used from one event loop.

    Every coroutine raises `ControllerTimeoutError` when the controller does not respond in time.
    """

    def __init__(
        self,
        cluster_id: str,
        heartbeats: Channel,
        requests: Channel,
        patience: Patience,
        *,
        metadata_offset: Callable[[], int],
        published: Callable[[int], Awaitable[None]],
    ) -> None:
        """Heartbeats have their own channel, so that no slow request delays them.

        `metadata_offset` returns the offset up to which this broker has published the metadata; `published` waits
        until an offset is published.
        """
        self._cluster_id = cluster_id
        self._heartbeats = heartbeats
        self._requests = requests
        self._patience = patience
        self._metadata_offset = metadata_offset
        self._published = published
        self._correlation_ids = itertools.count(1)
        # Flags of the last heartbeat, which the report of a failed directory repeats.
        self._want_fence = True
        self._want_shut_down = False
        # Invariant: every reported directory. Each heartbeat repeats them all, as the previous one may be lost.
        self._offline: list[bytes] = []

    async def register_broker(
        self,
        broker_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        rack: str | None = None,
        log_dirs: tuple[bytes, ...] = (),
        features: Mapping[str, tuple[int, int]] | None = None,
        fenced: bool = True,
        previous_broker_epoch: int = -1,
    ) -> RegisteredBroker:
        """Register this broker. It stays fenced until a heartbeat requests unfencing."""
        if not fenced:
            raise ControllerError("a broker registers unfenced in the active controller's own process only")
        request = broker.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self._cluster_id,
            incarnation_id=incarnation_id,
            listeners=[
                broker.Listener(name=name, host=host, port=port, security_protocol=security_protocols.get(name, 0))
                for name, (host, port) in listeners.items()
            ],
            features=[
                broker.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in (features or {}).items()
            ],
            rack=rack,
            log_dirs=list(log_dirs),
            previous_broker_epoch=previous_broker_epoch,
        )
        response = await self._heartbeats.send(
            request, broker.BrokerRegistrationResponse, timeout_ms=self._patience.heartbeat_ms
        )
        code = _code(response.error_code)
        return RegisteredBroker(code, _words(code), response.broker_epoch)

    async def heartbeat(
        self, broker_id: int, broker_epoch: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> HeartbeatResult:
        """Send a heartbeat. The controller unfences the broker unless `want_fence` is set."""
        self._want_fence, self._want_shut_down = want_fence, want_shut_down
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline),
        )
        response = await self._heartbeats.send(request, BrokerHeartbeatResponse, timeout_ms=self._patience.heartbeat_ms)
        code = _code(response.error_code)
        return HeartbeatResult(
            code, _words(code), is_fenced=response.is_fenced, should_shut_down=response.should_shut_down
        )

    async def fail_log_directories(self, broker_id: int, broker_epoch: int, directories: Sequence[bytes]) -> Result:
        """Report failed log directories in a heartbeat (KIP-858); every later heartbeat repeats them."""
        self._offline += [directory for directory in directories if directory not in self._offline]
        result = await self.heartbeat(
            broker_id, broker_epoch, want_fence=self._want_fence, want_shut_down=self._want_shut_down
        )
        return Result(result.error_code, result.error_message)

    async def assign_replicas(
        self, broker_id: int, broker_epoch: int, directories: Mapping[tuple[bytes, int], bytes]
    ) -> Result:
        """Report the log directories of replicas of this broker, by topic id and partition."""
        result = Result()
        placements = iter(directories.items())
        while part := list(itertools.islice(placements, _MOST_ASSIGNMENTS)):
            request = placed.AssignReplicasToDirsRequest(
                broker_id=broker_id, broker_epoch=broker_epoch, directories=_by_directory(part)
            )
            response = await self._requests.send(
                request, placed.AssignReplicasToDirsResponse, timeout_ms=self._patience.request_ms
            )
            code = _code(response.error_code)
            if code:
                result = Result(code, _words(code))
        return result

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        """Return a block of producer ids reserved for this broker; raises `StaleBrokerEpochError`."""
        response = await self._requests.send(
            AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch),
            AllocateProducerIdsResponse,
            timeout_ms=self._patience.request_ms,
        )
        code = _code(response.error_code)
        if code is ErrorCode.STALE_BROKER_EPOCH:
            raise StaleBrokerEpochError(f"broker epoch {broker_epoch} of broker {broker_id} is not the current one")
        if code:
            raise ControllerError(f"the active controller allocated no producer ids: {code.name}: {code.message}")
        return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, changes: Sequence[InSyncChange]
    ) -> list[InSyncResult]:
        """Request changes of in-sync replicas; returns the result of each change, in the order of `changes`."""
        request = in_sync.AlterPartitionRequest(
            broker_id=broker_id, broker_epoch=broker_epoch, topics=_by_topic(changes)
        )
        response = await self._requests.send(
            request, in_sync.AlterPartitionResponse, timeout_ms=self._patience.request_ms
        )
        whole = _code(response.error_code)
        if whole:
            return [InSyncResult(change.topic_id, change.partition, whole) for change in changes]
        results = {
            (topic.topic_id, partition.partition_index): InSyncResult(
                topic.topic_id,
                partition.partition_index,
                _code(partition.error_code),
                partition.leader_id,
                partition.leader_epoch,
                tuple(partition.isr),
                partition.leader_recovery_state,
                partition.partition_epoch,
            )
            for topic in response.topics
            for partition in topic.partitions
        }
        keys = [(change.topic_id, change.partition) for change in changes]
        return [results.get(key) or InSyncResult(*key, ErrorCode.UNKNOWN_SERVER_ERROR) for key in keys]

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics that this broker needs, and wait until its image has them; results in the order of `topics`."""
        request = CreateTopicsRequest(
            topics=list(topics), timeout_ms=self._patience.request_ms, validate_only=validate_only
        )
        header = RequestHeader(
            request_api_key=CreateTopicsRequest.__message__.api_key,
            request_api_version=_NEWEST_CREATION,
            correlation_id=next(self._correlation_ids) & 0x7FFF_FFFF,
            client_id="",
        )
        message = b"\x00" + encode(request, _NEWEST_CREATION)
        reply = await self._requests.send(
            build_envelope(header, message, SENDER, _OWN_ADDRESS),
            EnvelopeResponse,
            timeout_ms=self._patience.request_ms,
        )
        payload = open_response(header, reply)
        prefix = len(response_prefix(header.request_api_key, _NEWEST_CREATION))
        response, _ = decode(CreateTopicsResponse, payload, _NEWEST_CREATION, prefix)
        await self._published(reply.committed_offset)
        results = {
            topic.name: CreatedTopic(
                topic.name,
                _code(topic.error_code),
                topic.error_message,
                topic.topic_id,
                topic.num_partitions,
                topic.replication_factor,
            )
            for topic in response.topics
        }
        lacking = ErrorCode.UNKNOWN_SERVER_ERROR
        return [results.get(topic.name) or CreatedTopic(topic.name, lacking, lacking.message) for topic in topics]

    async def register_controller(
        self,
        controller_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        features: Mapping[str, tuple[int, int]],
    ) -> Result:
        """Register this node as a controller (KIP-919)."""
        request = controller.ControllerRegistrationRequest(
            controller_id=controller_id,
            incarnation_id=incarnation_id,
            listeners=[
                controller.Listener(name=name, host=host, port=port, security_protocol=security_protocols.get(name, 0))
                for name, (host, port) in listeners.items()
            ],
            features=[
                controller.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in features.items()
            ],
        )
        response = await self._requests.send(
            request, controller.ControllerRegistrationResponse, timeout_ms=self._patience.request_ms
        )
        code = _code(response.error_code)
        return Result(code, response.error_message or _words(code))


def _by_directory(placements: Iterable[tuple[tuple[bytes, int], bytes]]) -> list[placed.DirectoryData]:
    found: dict[bytes, dict[bytes, placed.TopicData]] = {}
    for (topic_id, partition), directory in placements:
        topic = found.setdefault(directory, {}).setdefault(topic_id, placed.TopicData(topic_id=topic_id, partitions=[]))
        topic.partitions.append(placed.PartitionData(partition_index=partition))
    return [placed.DirectoryData(id=directory, topics=list(topics.values())) for directory, topics in found.items()]


def _by_topic(changes: Sequence[InSyncChange]) -> list[in_sync.TopicData]:
    topics: dict[bytes, in_sync.TopicData] = {}
    for change in changes:
        topic = topics.setdefault(change.topic_id, in_sync.TopicData(topic_id=change.topic_id, partitions=[]))
        topic.partitions.append(
            in_sync.PartitionData(
                partition_index=change.partition,
                leader_epoch=change.leader_epoch,
                new_isr_with_epochs=[
                    in_sync.BrokerState(broker_id=replica, broker_epoch=epoch) for replica, epoch in change.isr
                ],
                leader_recovery_state=change.leader_recovery_state,
                partition_epoch=change.partition_epoch,
            )
        )
    return list(topics.values())


def _code(number: int) -> ErrorCode:
    """Return an error code; a code that is unknown here is UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _words(code: ErrorCode) -> str | None:
    return code.message if code else None
