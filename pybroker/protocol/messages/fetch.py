"""The messages of Fetch."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    field,
    ignorable,
    int8,
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


class ReplicaState(Struct):
    """ReplicaState."""

    replica_id: Annotated[int, int32, versions("15+")] = -1
    replica_epoch: Annotated[int, int64, versions("15+")] = -1


class FetchPartition(Struct):
    """FetchPartition."""

    partition: Annotated[int, int32, versions("0+")] = 0
    current_leader_epoch: Annotated[int, int32, versions("9+"), ignorable] = -1
    fetch_offset: Annotated[int, int64, versions("0+")] = 0
    last_fetched_epoch: Annotated[int, int32, versions("12+")] = -1
    log_start_offset: Annotated[int, int64, versions("5+"), ignorable] = -1
    partition_max_bytes: Annotated[int, int32, versions("0+")] = 0
    replica_directory_id: Annotated[bytes, uuid, versions("17+"), tag(0, "17+"), ignorable] = ZERO_UUID
    high_watermark: Annotated[int, int64, versions("18+"), tag(1, "18+"), ignorable] = 9223372036854775807


class FetchTopic(Struct):
    """FetchTopic."""

    topic: Annotated[str, string, versions("0-12"), ignorable] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable] = ZERO_UUID
    partitions: Annotated[list[FetchPartition], versions("0+")] = []


class ForgottenTopic(Struct):
    """ForgottenTopic."""

    topic: Annotated[str, string, versions("7-12"), ignorable] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable] = ZERO_UUID
    partitions: Annotated[list[int], int32, versions("7+")] = []


class FetchRequest(Message, api_key=1, kind="request", versions="4-18", flexible="12+"):
    """FetchRequest."""

    cluster_id: Annotated[str | None, string, versions("12+"), nullable("12+"), tag(0, "12+"), ignorable] = None
    replica_id: Annotated[int, int32, versions("0-14")] = -1
    replica_state: Annotated[ReplicaState, versions("15+"), tag(1, "15+")] = field(default_factory=ReplicaState)
    max_wait_ms: Annotated[int, int32, versions("0+")] = 0
    min_bytes: Annotated[int, int32, versions("0+")] = 0
    max_bytes: Annotated[int, int32, versions("3+"), ignorable] = 2147483647
    isolation_level: Annotated[int, int8, versions("4+"), ignorable] = 0
    session_id: Annotated[int, int32, versions("7+"), ignorable] = 0
    session_epoch: Annotated[int, int32, versions("7+"), ignorable] = -1
    topics: Annotated[list[FetchTopic], versions("0+")] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], versions("7+")] = []
    rack_id: Annotated[str, string, versions("11+"), ignorable] = ""


class EpochEndOffset(Struct):
    """EpochEndOffset."""

    epoch: Annotated[int, int32, versions("12+")] = -1
    end_offset: Annotated[int, int64, versions("12+")] = -1


class LeaderIdAndEpoch(Struct):
    """LeaderIdAndEpoch."""

    leader_id: Annotated[int, int32, versions("12+")] = -1
    leader_epoch: Annotated[int, int32, versions("12+")] = -1


class SnapshotId(Struct):
    """SnapshotId."""

    end_offset: Annotated[int, int64, versions("0+")] = -1
    epoch: Annotated[int, int32, versions("0+")] = -1


class AbortedTransaction(Struct):
    """AbortedTransaction."""

    producer_id: Annotated[int, int64, versions("4+")] = 0
    first_offset: Annotated[int, int64, versions("4+")] = 0


class PartitionData(Struct):
    """PartitionData."""

    partition_index: Annotated[int, int32, versions("0+")] = 0
    error_code: Annotated[int, int16, versions("0+")] = 0
    high_watermark: Annotated[int, int64, versions("0+")] = 0
    last_stable_offset: Annotated[int, int64, versions("4+"), ignorable] = -1
    log_start_offset: Annotated[int, int64, versions("5+"), ignorable] = -1
    diverging_epoch: Annotated[EpochEndOffset, versions("12+"), tag(0, "12+")] = field(default_factory=EpochEndOffset)
    current_leader: Annotated[LeaderIdAndEpoch, versions("12+"), tag(1, "12+")] = field(
        default_factory=LeaderIdAndEpoch
    )
    snapshot_id: Annotated[SnapshotId, versions("12+"), tag(2, "12+")] = field(default_factory=SnapshotId)
    aborted_transactions: Annotated[list[AbortedTransaction] | None, versions("4+"), nullable("4+"), ignorable] = []
    preferred_read_replica: Annotated[int, int32, versions("11+")] = -1
    records: Annotated[bytes | None, records, versions("0+"), nullable("0+")] = b""


class FetchableTopicResponse(Struct):
    """FetchableTopicResponse."""

    topic: Annotated[str, string, versions("0-12"), ignorable] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable] = ZERO_UUID
    partitions: Annotated[list[PartitionData], versions("0+")] = []


class NodeEndpoint(Struct):
    """NodeEndpoint."""

    node_id: Annotated[int, int32, versions("16+"), map_key] = 0
    host: Annotated[str, string, versions("16+")] = ""
    port: Annotated[int, int32, versions("16+")] = 0
    rack: Annotated[str | None, string, versions("16+"), nullable("16+")] = None


class FetchResponse(Message, api_key=1, kind="response", versions="4-18", flexible="12+"):
    """FetchResponse."""

    throttle_time_ms: Annotated[int, int32, versions("1+"), ignorable] = 0
    error_code: Annotated[int, int16, versions("7+"), ignorable] = 0
    session_id: Annotated[int, int32, versions("7+")] = 0
    responses: Annotated[list[FetchableTopicResponse], versions("0+")] = []
    node_endpoints: Annotated[list[NodeEndpoint], versions("16+"), tag(0, "16+")] = []
