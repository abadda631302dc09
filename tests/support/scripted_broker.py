"""A broker with scripted responses, to test clients under faults.

Serves ApiVersions, SaslHandshake (without SASL), Metadata, InitProducerId, Produce, ListOffsets, Fetch and
OffsetForLeaderEpoch. It leads all partitions of one topic: partition 0, and one for each further script. `lead_anew`
starts the next leader epoch with a truncated log.

The next line of a partition's script sets the response to a Produce: an error code, `DROP` to close the connection, or
`LOST` to close it after appending the batch, whose retry is then recognized as a duplicate. Sequence numbers of
idempotent producers are checked. Only partition 0 has a log. `faults` are such lines for other APIs.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pybroker.protocol.codec import decode, encode
from pybroker.protocol.header import RequestHeader, response_prefix, skip_tagged
from pybroker.protocol.messages import api_versions as versions
from pybroker.protocol.messages import fetch, list_offsets, metadata, produce, request_class, sasl_handshake
from pybroker.protocol.messages import init_producer_id as identity
from pybroker.protocol.messages import offset_for_leader_epoch as epoch_ends
from pybroker.protocol.schema import Message
from tests.support.batches import HEADER

DROP, LOST = -100, -101
HELD = {"retry.backoff.ms": 60_000, "retry.backoff.max.ms": 60_000}
"""Settings of a client that does not retry within a test."""
OUT_OF_ORDER = 45
OUT_OF_RANGE = 1
FENCED_LEADER_EPOCH = 74
ILLEGAL_SASL_STATE = 34
"""The error code of a SaslHandshake on a listener without SASL."""
SERVED = {0: (3, 12), 1: (4, 12), 2: (1, 7), 3: (1, 12), 18: (0, 3), 22: (0, 4), 23: (2, 4)}
"""The served versions by API key, unless a test overrides them."""


@dataclass(frozen=True, slots=True)
class Received:
    """One received batch."""

    producer_id: int
    epoch: int
    sequence: int
    count: int
    raw: bytes
    partition: int = 0


@dataclass
class ScriptedBroker:
    """`with ScriptedBroker([6, 0]) as broker`: NOT_LEADER_OR_FOLLOWER for the first Produce, success from then on."""

    script: Sequence[int] = ()
    topic: str = "t"
    topic_error: int = 0
    """The error code of the topic in Metadata."""
    served: Mapping[int, tuple[int, int]] = field(default_factory=lambda: SERVED)
    seen: dict[int, set[int]] = field(default_factory=dict)
    """The requested versions by API key."""
    received: list[Received] = field(default_factory=list)
    faults: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Faults of the next requests by API key: `DROP`, or an error code for ListOffsets and InitProducerId."""
    requested: Counter[int] = field(default_factory=Counter)
    """The number of requests by API key."""
    identities: int = 0
    aborted: Sequence[tuple[int, int]] = ()
    """`(producer id, first offset)` of the aborted transactions that every Fetch response lists."""
    epoch: int = 0
    """The leader epoch."""
    looked_up: list[int] = field(default_factory=list)
    """The epochs in the OffsetForLeaderEpoch requests."""
    further: Sequence[Sequence[int]] = ()
    """The scripts of the partitions from 1 on."""
    responds_produce: threading.Event = field(default_factory=threading.Event)
    """Every Produce waits until this event is set. It is set at the start."""

    def __enter__(self) -> Self:
        self._scripts = [deque(lines) for lines in (self.script, *self.further)]
        self.responds_produce.set()
        self.faults = {key: deque(lines) for key, lines in self.faults.items()}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.bootstrap_servers = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        self._offset = 0
        self._sequences: dict[tuple[int, int], int] = {}
        self._last: dict[tuple[int, int], tuple[int, int]] = {}
        self._log: list[tuple[int, int, bytes]] = []
        self._epochs = [(self.epoch, 0)]
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.responds_produce.set()
        self.close_connections()
        for thread in list(self._threads):
            thread.join(60)

    def hold(self, base: int, count: int, raw: bytes) -> None:
        """Append raw bytes to the log, as a batch of `count` offsets from `base`. They may be invalid."""
        with self._lock:
            self._log.append((base, count, raw))
            self._offset = base + count

    def close_connections(self) -> None:
        """Close every connection, as a broker does with idle connections."""
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def lead_anew(self, end: int) -> None:
        """Begin the next leader epoch with a log truncated to `end`."""
        with self._lock:
            self._log = [batch for batch in self._log if batch[0] < end]
            self._offset = sum(self._log[-1][:2]) if self._log else 0
            self.epoch += 1
            self._epochs = [(epoch, start) for epoch, start in self._epochs if start < end]
            self._epochs.append((self.epoch, self._offset))

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while True:
                try:
                    head = stream.read(4)
                    if len(head) < 4:
                        return
                    frame = stream.read(struct.unpack(">i", head)[0])
                    response = self._serve_frame(frame)
                    if response is None:
                        return
                    connection.sendall(struct.pack(">i", len(response)) + response)
                except OSError:
                    return

    def _serve_frame(self, frame: bytes) -> bytes | None:
        header, start = decode(RequestHeader, frame, 1)
        key, version = header.request_api_key, header.request_api_version
        self.seen.setdefault(key, set()).add(version)
        if key == 18 and version > self.served[18][1]:
            # KIP-511: the error in the encoding of version 0, with the supported versions.
            refusal = versions.ApiVersionsResponse(error_code=35, api_keys=[_range(18, self.served[18])])
            return struct.pack(">i", header.correlation_id) + encode(refusal, 0)
        if request_class(key).__message__.is_flexible(version):
            start = skip_tagged(frame, start)
        request, _ = decode(request_class(key), frame, version, start)
        self.requested[key] += 1
        fault = self._next_fault(key)
        body = None if fault == DROP else self._respond(request, fault)
        if body is None:
            return None
        return struct.pack(">i", header.correlation_id) + response_prefix(key, version) + encode(body, version)

    def _next_fault(self, key: int) -> int:
        lines = self.faults.get(key)
        assert lines is None or isinstance(lines, deque)
        return lines.popleft() if lines else 0

    def _respond(self, request: Message, fault: int) -> Message | None:
        if isinstance(request, versions.ApiVersionsRequest):
            return versions.ApiVersionsResponse(api_keys=[_range(k, served) for k, served in self.served.items()])
        if isinstance(request, metadata.MetadataRequest):
            return self._metadata()
        if isinstance(request, identity.InitProducerIdRequest):
            if fault:
                return identity.InitProducerIdResponse(error_code=fault)
            self.identities += 1
            return identity.InitProducerIdResponse(producer_id=self.identities, producer_epoch=0)
        if isinstance(request, list_offsets.ListOffsetsRequest):
            return self._list_offsets(request, fault)
        if isinstance(request, fetch.FetchRequest):
            return self._fetch(request)
        if isinstance(request, sasl_handshake.SaslHandshakeRequest):
            return sasl_handshake.SaslHandshakeResponse(error_code=ILLEGAL_SASL_STATE)
        if isinstance(request, epoch_ends.OffsetForLeaderEpochRequest):
            return self._epoch_end(request)
        assert isinstance(request, produce.ProduceRequest)
        self.responds_produce.wait()
        return self._produce(request)

    def _metadata(self) -> Message:
        partitions = [
            metadata.MetadataResponsePartition(
                partition_index=index, leader_id=1, leader_epoch=self.epoch, replica_nodes=[1], isr_nodes=[1]
            )
            for index in range(len(self._scripts))
        ]
        host, port = self.bootstrap_servers.split(":")
        return metadata.MetadataResponse(
            brokers=[metadata.MetadataResponseBroker(node_id=1, host=host, port=int(port))],
            topics=[self._described(partitions)],
        )

    def _described(self, partitions: list[metadata.MetadataResponsePartition]) -> metadata.MetadataResponseTopic:
        if self.topic_error:
            return metadata.MetadataResponseTopic(name=self.topic, error_code=self.topic_error)
        return metadata.MetadataResponseTopic(name=self.topic, partitions=partitions)

    def _list_offsets(self, request: list_offsets.ListOffsetsRequest, fault: int) -> Message:
        ((topic,),) = (request.topics,)
        (requested,) = topic.partitions
        offset = 0 if requested.timestamp == -2 else self._offset
        response = list_offsets.ListOffsetsPartitionResponse(partition_index=0, offset=offset, error_code=fault)
        if self.served[2][1] >= 4:
            response.leader_epoch = self.epoch
        return list_offsets.ListOffsetsResponse(
            topics=[list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=[response])]
        )

    def _fetch(self, request: fetch.FetchRequest) -> Message:
        """Return all batches from the one with the fetch offset on, without waiting."""
        ((topic,),) = (request.topics,)
        (requested,) = topic.partitions
        with self._lock:
            found = b"".join(raw for base, count, raw in self._log if base + count > requested.fetch_offset)
            fenced = 0 <= requested.current_leader_epoch < self.epoch
            code = FENCED_LEADER_EPOCH if fenced else OUT_OF_RANGE if requested.fetch_offset > self._offset else 0
        partition = fetch.PartitionData(partition_index=0, high_watermark=self._offset, records=b"" if code else found)
        partition.error_code = code
        partition.aborted_transactions = [
            fetch.AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in self.aborted
        ]
        return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(topic=topic.topic, partitions=[partition])])

    def _epoch_end(self, request: epoch_ends.OffsetForLeaderEpochRequest) -> Message:
        ((topic,),) = (request.topics,)
        (requested,) = topic.partitions
        self.looked_up.append(requested.leader_epoch)
        with self._lock:
            end = epoch_ends.EpochEndOffset(partition=0)
            known = [epoch for epoch, _ in self._epochs if epoch <= requested.leader_epoch]
            if known and requested.leader_epoch <= self.epoch:
                later = [start for epoch, start in self._epochs if epoch > requested.leader_epoch]
                end.leader_epoch, end.end_offset = known[-1], min(later, default=self._offset)
        return epoch_ends.OffsetForLeaderEpochResponse(
            topics=[epoch_ends.OffsetForLeaderTopicResult(topic=topic.topic, partitions=[end])]
        )

    def _produce(self, request: produce.ProduceRequest) -> Message | None:
        ((topic,),) = (request.topic_data,)
        appended = [self._append(one.index, bytes(one.records or b"")) for one in topic.partition_data]
        replies = [response for response in appended if response is not None]
        if len(replies) < len(appended):
            return None
        return produce.ProduceResponse(
            responses=[produce.TopicProduceResponse(name=topic.name, partition_responses=replies)]
        )

    def _append(self, index: int, raw: bytes) -> produce.PartitionProduceResponse | None:
        fields = HEADER.unpack_from(raw)
        with self._lock:
            base, script = self._offset, self._scripts[index]
            batch = Received(fields[9], fields[10], fields[11], fields[12], raw, index)
            self.received.append(batch)
            expected = self._sequences.get((batch.producer_id, index), 0)
            line = script.popleft() if script else 0
            code = 0 if line == LOST else line
            if code == 0 and (written := self._last.get((batch.producer_id, index))) and written[0] == batch.sequence:
                return produce.PartitionProduceResponse(index=index, base_offset=written[1])
            if code == 0 and batch.producer_id >= 0 and batch.sequence != expected:
                code = OUT_OF_ORDER
            if code == 0:
                if index == 0:
                    stamped = struct.pack(">q", base) + raw[8:12] + struct.pack(">i", self.epoch) + raw[16:]
                    self._log.append((base, batch.count, stamped))
                    self._offset += batch.count
                self._sequences[batch.producer_id, index] = expected + batch.count
                if line == LOST:
                    self._last[batch.producer_id, index] = batch.sequence, base
        if line in (DROP, LOST):
            return None
        return produce.PartitionProduceResponse(index=index, error_code=code, base_offset=base if code == 0 else -1)


def _range(key: int, served: tuple[int, int]) -> versions.ApiVersion:
    return versions.ApiVersion(api_key=key, min_version=served[0], max_version=served[1])
