"""Produce (0). The hot path in Rust has its own decoder and encoder. This declaration is for clients and tests."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    field,
    ignorable,
    int16,
    int32,
    int64,
    map_key,
    nullable,
    records,
    string,
    tag,
    uuid,
    versions,
)


class PartitionProduceData(Struct):
    """The batches for one partition."""

    index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    records: Annotated[
        bytes | None, records, versions("0+"), nullable("0+"), about("Its batches, one after the other.")
    ] = b""


class TopicProduceData(Struct):
    """The batches for one topic."""

    name: Annotated[str, string, versions("0-12"), ignorable, map_key, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable, map_key, about("The topic's id.")] = ZERO_UUID
    partition_data: Annotated[list[PartitionProduceData], versions("0+"), about("What goes to each partition.")] = []


class ProduceRequest(Message, api_key=0, kind="request", versions="0-13", flexible="9+"):
    """Appends record batches. The data plane serves it, so Python code uses it only in clients and tests."""

    transactional_id: Annotated[
        str | None, string, versions("3+"), nullable("3+"), about("Set by a transactional producer.")
    ] = None
    acks: Annotated[
        int, int16, versions("0+"), about("0 no answer, 1 the leader has it, -1 the in-sync replicas have it.")
    ] = 0
    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 0
    topic_data: Annotated[list[TopicProduceData], versions("0+"), about("What goes to each topic.")] = []


class BatchIndexAndErrorMessage(Struct):
    """A rejected record."""

    batch_index: Annotated[int, int32, versions("8+"), about("Position of the record in its batch.")] = 0
    batch_index_error_message: Annotated[
        str | None, string, versions("8+"), nullable("8+"), about("Why the record was refused.")
    ] = None


class LeaderIdAndEpoch(Struct):
    """The leader and its epoch."""

    leader_id: Annotated[int, int32, versions("10+"), about("Broker id of the leader; -1 where there is none.")] = -1
    leader_epoch: Annotated[int, int32, versions("10+"), about("Epoch of that leadership.")] = -1


class PartitionProduceResponse(Struct):
    """The result for one partition."""

    index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    base_offset: Annotated[int, int64, versions("0+"), about("Offset of the first record.")] = 0
    log_append_time_ms: Annotated[
        int,
        int64,
        versions("2+"),
        ignorable,
        about("The broker's time of the append; -1 where the producer's timestamps stand."),
    ] = -1
    log_start_offset: Annotated[int, int64, versions("5+"), ignorable, about("The lowest offset in the log.")] = -1
    record_errors: Annotated[
        list[BatchIndexAndErrorMessage],
        versions("8+"),
        ignorable,
        about("The records that made the broker refuse the batch (KIP-467)."),
    ] = []
    error_message: Annotated[
        str | None, string, versions("8+"), nullable("8+"), ignorable, about("Why the batch was refused.")
    ] = None
    current_leader: Annotated[
        LeaderIdAndEpoch, versions("10+"), tag(0, "10+"), about("Whom to send to instead (KIP-951).")
    ] = field(default_factory=LeaderIdAndEpoch)


class TopicProduceResponse(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0-12"), ignorable, map_key, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable, map_key, about("The topic's id.")] = ZERO_UUID
    partition_responses: Annotated[
        list[PartitionProduceResponse], versions("0+"), about("One result for each partition.")
    ] = []


class NodeEndpoint(Struct):
    """A broker and its address."""

    node_id: Annotated[int, int32, versions("10+"), map_key, about("The broker's id.")] = 0
    host: Annotated[str, string, versions("10+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, int32, versions("10+"), about("Port to connect to.")] = 0
    rack: Annotated[str | None, string, versions("10+"), nullable("10+"), about("The broker's rack.")] = None


class ProduceResponse(Message, api_key=0, kind="response", versions="0-13", flexible="9+"):
    """The result for each partition."""

    responses: Annotated[list[TopicProduceResponse], versions("0+"), about("One result for each topic.")] = []
    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    node_endpoints: Annotated[
        list[NodeEndpoint],
        versions("10+"),
        tag(0, "10+"),
        about("Where the leaders named in `current_leader` are reached."),
    ] = []
