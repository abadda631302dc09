"""One of several scripted brokers of a cluster: it names other leaders, near replicas, and where logs part."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import fetch, metadata, produce
from pybroker.protocol.schema import Message
from tests.support.scripted_broker import SERVED, ScriptedBroker

TOPIC_ID = bytes(range(16))
NEWEST = {**SERVED, 1: (4, 18), 3: (1, 13)}
"""With topics by id, and leaders in answers."""


@dataclass
class ScriptedNode(ScriptedBroker):
    """A scripted broker with an id of its own, which says what a test has it say of the others."""

    node: int = 1
    leader: int = 1
    """Who leads, as its metadata says."""
    others: list[ScriptedNode] = field(default_factory=list)
    """Whom its metadata names beside itself."""
    is_named: bool = True
    """Whether its metadata names itself."""
    hint: ScriptedNode | None = None
    """Answers to Produce and Fetch name this one as the leader of a later epoch."""
    prefers: ScriptedNode | None = None
    """Answers to Fetch name this one as the replica to read from."""
    fetch_error: int = 0
    metadata_error: int = 0
    """The error of the whole Metadata response."""
    racks: list[str] = field(default_factory=list)
    """The racks that Fetches named."""
    hangs: threading.Event = field(default_factory=threading.Event)
    """Cleared by a test: requests of `hangs_at` are not answered until it is set, nor what comes behind them."""
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
        answer = super()._metadata()
        assert isinstance(answer, metadata.MetadataResponse)
        nodes = [*([self] if self.is_named else []), *self.others]
        answer.brokers = [
            metadata.MetadataResponseBroker(node_id=node.node, host="127.0.0.1", port=node.port) for node in nodes
        ]
        answer.error_code = self.metadata_error
        for topic in answer.topics:
            topic.topic_id = TOPIC_ID
            for partition in topic.partitions:
                partition.leader_id = self.leader
        return answer

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    def _produce(self, request: produce.ProduceRequest) -> Message | None:
        if self.hint is None:
            return super()._produce(request)
        leader = produce.LeaderIdAndEpoch(leader_id=self.hint.node, leader_epoch=self.epoch + 1)
        answer = produce.PartitionProduceResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader)
        endpoint = produce.NodeEndpoint(node_id=self.hint.node, host="127.0.0.1", port=self.hint.port)
        name = request.topic_data[0].name
        return produce.ProduceResponse(
            responses=[produce.TopicProduceResponse(name=name, partition_responses=[answer])],
            node_endpoints=[endpoint],
        )

    def _fetch(self, request: fetch.FetchRequest) -> Message:
        self.racks.append(request.rack_id)
        answer = super()._fetch(request)
        assert isinstance(answer, fetch.FetchResponse)
        ((topic,), (asked,)) = (answer.responses, request.topics)
        topic.topic_id = asked.topic_id
        (partition,) = topic.partitions
        self._part(partition, asked.partitions[0])
        if self.fetch_error:
            partition.error_code, partition.records = self.fetch_error, b""
        if self.prefers is not None:
            partition.preferred_read_replica, partition.records = self.prefers.node, b""
        if self.hint is not None:
            partition.error_code, partition.records = ErrorCode.NOT_LEADER_OR_FOLLOWER, b""
            partition.current_leader = fetch.LeaderIdAndEpoch(leader_id=self.hint.node, leader_epoch=self.epoch + 1)
            answer.node_endpoints = [fetch.NodeEndpoint(node_id=self.hint.node, host="127.0.0.1", port=self.hint.port)]
        return answer

    def _part(self, partition: fetch.PartitionData, asked: fetch.FetchPartition) -> None:
        """Name where the reader's log leaves this one, as a broker does (KIP-595)."""
        last = asked.last_fetched_epoch
        if last < 0 or partition.error_code not in (0, ErrorCode.OFFSET_OUT_OF_RANGE):
            return
        epoch = max((epoch for epoch, _ in self._epochs if epoch <= last), default=-1)
        end = min((start for known, start in self._epochs if known > last), default=self._offset)
        if epoch < last or end < asked.fetch_offset:
            partition.error_code, partition.records = 0, b""
            partition.diverging_epoch = fetch.EpochEndOffset(epoch=epoch, end_offset=end)
