"""A scripted broker of a cluster, which reports other leaders, preferred read replicas and diverging epochs."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import fetch, metadata, produce
from pybroker.protocol.schema import Message
from tests.support.scripted_broker import SERVED, ScriptedBroker

TOPIC_ID = bytes(range(16))
NEWEST = {**SERVED, 1: (4, 18), 3: (1, 13)}
"""Versions with topic ids, and with the current leader in Produce and Fetch responses."""


@dataclass
class ScriptedNode(ScriptedBroker):
    """A scripted broker with its own id, whose responses describe other brokers as the test sets."""

    node: int = 1
    leader: int = 1
    """The leader in its Metadata responses."""
    others: list[ScriptedNode] = field(default_factory=list)
    """The other brokers in its Metadata responses."""
    is_named: bool = True
    """Whether its Metadata responses contain the broker itself."""
    hint: ScriptedNode | None = None
    """Produce and Fetch responses report this node as the leader of the next epoch."""
    prefers: ScriptedNode | None = None
    """Fetch responses report this node as the preferred read replica."""
    fetch_error: int = 0
    metadata_error: int = 0
    """The error of the whole Metadata response."""
    racks: list[str] = field(default_factory=list)
    """The rack ids of the Fetch requests."""
    hangs: threading.Event = field(default_factory=threading.Event)
    """While a test clears this event, requests in `hangs_at` and those queued behind them get no response."""
    hangs_at: tuple[type[Message], ...] = (metadata.MetadataRequest, produce.ProduceRequest, fetch.FetchRequest)

    def __post_init__(self) -> None:
        self.hangs.set()

    def _respond(self, request: Message, fault: int) -> Message | None:
        if not isinstance(request, (metadata.MetadataRequest, produce.ProduceRequest, fetch.FetchRequest)):
            return super()._respond(request, fault)
        if isinstance(request, self.hangs_at):
            self.hangs.wait(60)
        return super()._respond(request, fault)

    def _metadata(self) -> Message:
        response = super()._metadata()
        assert isinstance(response, metadata.MetadataResponse)
        nodes = [*([self] if self.is_named else []), *self.others]
        response.brokers = [
            metadata.MetadataResponseBroker(node_id=node.node, host="127.0.0.1", port=node.port) for node in nodes
        ]
        response.error_code = self.metadata_error
        for topic in response.topics:
            topic.topic_id = TOPIC_ID
            for partition in topic.partitions:
                partition.leader_id = self.leader
        return response

    @property
    def port(self) -> int:
        """The port of the listener."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    def _produce(self, request: produce.ProduceRequest) -> Message | None:
        if self.hint is None:
            return super()._produce(request)
        leader = produce.LeaderIdAndEpoch(leader_id=self.hint.node, leader_epoch=self.epoch + 1)
        response = produce.PartitionProduceResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader)
        endpoint = produce.NodeEndpoint(node_id=self.hint.node, host="127.0.0.1", port=self.hint.port)
        name = request.topic_data[0].name
        return produce.ProduceResponse(
            responses=[produce.TopicProduceResponse(name=name, partition_responses=[response])],
            node_endpoints=[endpoint],
        )

    def _fetch(self, request: fetch.FetchRequest) -> Message:
        self.racks.append(request.rack_id)
        response = super()._fetch(request)
        assert isinstance(response, fetch.FetchResponse)
        ((topic,), (requested,)) = (response.responses, request.topics)
        topic.topic_id = requested.topic_id
        (partition,) = topic.partitions
        self._part(partition, requested.partitions[0])
        if self.fetch_error:
            partition.error_code, partition.records = self.fetch_error, b""
        if self.prefers is not None:
            partition.preferred_read_replica, partition.records = self.prefers.node, b""
        if self.hint is not None:
            partition.error_code, partition.records = ErrorCode.NOT_LEADER_OR_FOLLOWER, b""
            partition.current_leader = fetch.LeaderIdAndEpoch(leader_id=self.hint.node, leader_epoch=self.epoch + 1)
            response.node_endpoints = [
                fetch.NodeEndpoint(node_id=self.hint.node, host="127.0.0.1", port=self.hint.port)
            ]
        return response

    def _part(self, partition: fetch.PartitionData, requested: fetch.FetchPartition) -> None:
        """Set the diverging epoch if the log of the fetcher diverges from this one, as a broker does (KIP-595)."""
        last = requested.last_fetched_epoch
        if last < 0 or partition.error_code not in (0, ErrorCode.OFFSET_OUT_OF_RANGE):
            return
        epoch = max((epoch for epoch, _ in self._epochs if epoch <= last), default=-1)
        end = min((start for known, start in self._epochs if known > last), default=self._offset)
        if epoch < last or end < requested.fetch_offset:
            partition.error_code, partition.records = 0, b""
            partition.diverging_epoch = fetch.EpochEndOffset(epoch=epoch, end_offset=end)
