"""The messages of Produce."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
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
    """PartitionProduceData."""

    index: Annotated[int, int32, versions("0+")] = 0
    records: Annotated[bytes | None, records, versions("0+"), nullable("0+")] = b""


class TopicProduceData(Struct):
    """TopicProduceData."""

    name: Annotated[str, string, versions("0-12"), ignorable, map_key] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable, map_key] = ZERO_UUID
    partition_data: Annotated[list[PartitionProduceData], versions("0+")] = []


class ProduceRequest(Message, api_key=0, kind="request", versions="3-13", flexible="9+"):
    """ProduceRequest."""

    transactional_id: Annotated[str | None, string, versions("3+"), nullable("3+")] = None
    acks: Annotated[int, int16, versions("0+")] = 0
    timeout_ms: Annotated[int, int32, versions("0+")] = 0
    topic_data: Annotated[list[TopicProduceData], versions("0+")] = []


class BatchIndexAndErrorMessage(Struct):
    """BatchIndexAndErrorMessage."""

    batch_index: Annotated[int, int32, versions("8+")] = 0
    batch_index_error_message: Annotated[str | None, string, versions("8+"), nullable("8+")] = None


class LeaderIdAndEpoch(Struct):
    """LeaderIdAndEpoch."""

    leader_id: Annotated[int, int32, versions("10+")] = -1
    leader_epoch: Annotated[int, int32, versions("10+")] = -1


class PartitionProduceResponse(Struct):
    """PartitionProduceResponse."""

    index: Annotated[int, int32, versions("0+")] = 0
    error_code: Annotated[int, int16, versions("0+")] = 0
    base_offset: Annotated[int, int64, versions("0+")] = 0
    log_append_time_ms: Annotated[int, int64, versions("2+"), ignorable] = -1
    log_start_offset: Annotated[int, int64, versions("5+"), ignorable] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], versions("8+"), ignorable] = []
    error_message: Annotated[str | None, string, versions("8+"), nullable("8+"), ignorable] = None
    current_leader: Annotated[LeaderIdAndEpoch, versions("10+"), tag(0, "10+")] = field(
        default_factory=LeaderIdAndEpoch
    )


class TopicProduceResponse(Struct):
    """TopicProduceResponse."""

    name: Annotated[str, string, versions("0-12"), ignorable, map_key] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable, map_key] = ZERO_UUID
    partition_responses: Annotated[list[PartitionProduceResponse], versions("0+")] = []


class NodeEndpoint(Struct):
    """NodeEndpoint."""

    node_id: Annotated[int, int32, versions("10+"), map_key] = 0
    host: Annotated[str, string, versions("10+")] = ""
    port: Annotated[int, int32, versions("10+")] = 0
    rack: Annotated[str | None, string, versions("10+"), nullable("10+")] = None


class ProduceResponse(Message, api_key=0, kind="response", versions="3-13", flexible="9+"):
    """ProduceResponse."""

    responses: Annotated[list[TopicProduceResponse], versions("0+")] = []
    throttle_time_ms: Annotated[int, int32, versions("1+"), ignorable] = 0
    node_endpoints: Annotated[list[NodeEndpoint], versions("10+"), tag(0, "10+")] = []
