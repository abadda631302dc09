"""Fetch (1). The hot path in Rust has its own decoder and encoder. This declaration is for clients and tests."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
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
    """A follower and its broker epoch."""

    replica_id: Annotated[int, int32, versions("15+"), about("Broker id of a follower; -1 for a consumer.")] = -1
    replica_epoch: Annotated[int, int64, versions("15+"), about("The follower's broker epoch; -1 where unknown.")] = -1


class FetchPartition(Struct):
    """A partition and the offset to fetch from."""

    partition: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    current_leader_epoch: Annotated[
        int,
        int32,
        versions("9+"),
        ignorable,
        about("The leader epoch that the client knows, for fencing; -1 for none."),
    ] = -1
    fetch_offset: Annotated[int, int64, versions("0+"), about("The first offset wanted.")] = 0
    last_fetched_epoch: Annotated[
        int, int32, versions("12+"), about("Leader epoch of the last record the client has; -1 for none (KIP-595).")
    ] = -1
    log_start_offset: Annotated[
        int, int64, versions("5+"), ignorable, about("The lowest offset that a follower has; -1 from a consumer.")
    ] = -1
    partition_max_bytes: Annotated[
        int, int32, versions("0+"), about("Most bytes wanted; the first batch comes whole all the same (KIP-74).")
    ] = 0
    replica_directory_id: Annotated[
        bytes, uuid, versions("17+"), tag(0, "17+"), ignorable, about("The log directory of a follower's replica.")
    ] = ZERO_UUID
    high_watermark: Annotated[
        int,
        int64,
        versions("18+"),
        tag(1, "18+"),
        ignorable,
        about("The high watermark that a follower knows; the highest number where it does not say."),
    ] = 9223372036854775807


class FetchTopic(Struct):
    """A topic and its partitions to fetch."""

    topic: Annotated[str, string, versions("0-12"), ignorable, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable, about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[list[FetchPartition], versions("0+"), about("The partitions wanted.")] = []


class ForgottenTopic(Struct):
    """A topic with partitions to remove from the fetch session."""

    topic: Annotated[str, string, versions("7-12"), ignorable, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable, about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[list[int], int32, versions("7+"), about("The partitions that leave the session.")] = []


class FetchRequest(Message, api_key=1, kind="request", versions="0-18", flexible="12+"):
    """Requests record batches. The data plane serves it, so Python code uses it only in clients and tests."""

    cluster_id: Annotated[
        str | None,
        string,
        versions("12+"),
        nullable("12+"),
        tag(0, "12+"),
        ignorable,
        about("The cluster a follower or controller believes in."),
    ] = None
    replica_id: Annotated[int, int32, versions("0-14"), about("Broker id of a follower; -1 for a consumer.")] = -1
    replica_state: Annotated[ReplicaState, versions("15+"), tag(1, "15+"), about("Who the follower is.")] = field(
        default_factory=ReplicaState
    )
    max_wait_ms: Annotated[int, int32, versions("0+"), about("How long to wait for `min_bytes`, in milliseconds.")] = 0
    min_bytes: Annotated[int, int32, versions("0+"), about("Answer once this many bytes are there.")] = 0
    max_bytes: Annotated[
        int,
        int32,
        versions("3+"),
        ignorable,
        about("Most bytes wanted in the answer; the first batch comes whole all the same (KIP-74)."),
    ] = 2147483647
    isolation_level: Annotated[int, int8, versions("4+"), ignorable, about("0 read_uncommitted, 1 read_committed.")] = 0
    session_id: Annotated[int, int32, versions("7+"), ignorable, about("The fetch session; 0 outside of one.")] = 0
    session_epoch: Annotated[
        int, int32, versions("7+"), ignorable, about("Position in the session: 0 opens one, -1 closes it (KIP-227).")
    ] = -1
    topics: Annotated[
        list[FetchTopic], versions("0+"), about("The topics wanted; within a session those that change.")
    ] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], versions("7+"), about("What leaves the session.")] = []
    rack_id: Annotated[
        str, string, versions("11+"), ignorable, about("The consumer's rack, to find a near replica (KIP-392).")
    ] = ""


class EpochEndOffset(Struct):
    """A leader epoch and its end offset."""

    epoch: Annotated[int, int32, versions("12+"), about("The largest epoch that both logs share.")] = -1
    end_offset: Annotated[int, int64, versions("12+"), about("Where that epoch ends in the leader's log.")] = -1


class LeaderIdAndEpoch(Struct):
    """The leader and its epoch."""

    leader_id: Annotated[int, int32, versions("12+"), about("Broker id of the leader; -1 where there is none.")] = -1
    leader_epoch: Annotated[int, int32, versions("12+"), about("Epoch of that leadership.")] = -1


class SnapshotId(Struct):
    """A snapshot of the metadata log."""

    end_offset: Annotated[int, int64, versions("0+"), about("The offset after the snapshot.")] = -1
    epoch: Annotated[int, int32, versions("0+"), about("The epoch of its last record.")] = -1


class AbortedTransaction(Struct):
    """An aborted transaction, whose records consumers skip."""

    producer_id: Annotated[int, int64, versions("4+"), about("Whose transaction it was.")] = 0
    first_offset: Annotated[int, int64, versions("4+"), about("Where it began in this partition.")] = 0


class PartitionData(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    high_watermark: Annotated[int, int64, versions("0+"), about("The offset below which all is committed.")] = 0
    last_stable_offset: Annotated[
        int, int64, versions("4+"), ignorable, about("The offset below which every transaction has ended.")
    ] = -1
    log_start_offset: Annotated[int, int64, versions("5+"), ignorable, about("The lowest offset in the log.")] = -1
    diverging_epoch: Annotated[
        EpochEndOffset,
        versions("12+"),
        tag(0, "12+"),
        about("Where a follower's log departs from the leader's (KIP-595)."),
    ] = field(default_factory=EpochEndOffset)
    current_leader: Annotated[
        LeaderIdAndEpoch, versions("12+"), tag(1, "12+"), about("Whom to send to instead (KIP-951).")
    ] = field(default_factory=LeaderIdAndEpoch)
    snapshot_id: Annotated[SnapshotId, versions("12+"), tag(2, "12+"), about("The snapshot to fetch first.")] = field(
        default_factory=SnapshotId
    )
    aborted_transactions: Annotated[
        list[AbortedTransaction] | None,
        versions("4+"),
        nullable("4+"),
        ignorable,
        about("Transactions to leave out of the records; null for read_uncommitted."),
    ] = []
    preferred_read_replica: Annotated[
        int, int32, versions("11+"), about("Broker to fetch from instead; -1 for none (KIP-392).")
    ] = -1
    records: Annotated[
        bytes | None,
        records,
        versions("0+"),
        nullable("0+"),
        about("Batches, one after the other; the last may be cut off."),
    ] = b""


class FetchableTopicResponse(Struct):
    """The result for one topic."""

    topic: Annotated[str, string, versions("0-12"), ignorable, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("13+"), ignorable, about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[list[PartitionData], versions("0+"), about("What was found in each partition.")] = []


class NodeEndpoint(Struct):
    """A broker and its address."""

    node_id: Annotated[int, int32, versions("16+"), map_key, about("The broker's id.")] = 0
    host: Annotated[str, string, versions("16+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, int32, versions("16+"), about("Port to connect to.")] = 0
    rack: Annotated[str | None, string, versions("16+"), nullable("16+"), about("The broker's rack.")] = None


class FetchResponse(Message, api_key=1, kind="response", versions="0-18", flexible="12+"):
    """The fetched batches of each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[
        int, int16, versions("7+"), ignorable, about("An `ErrorCode`; 0 where nothing went wrong.")
    ] = 0
    session_id: Annotated[int, int32, versions("7+"), about("The fetch session; 0 outside of one.")] = 0
    responses: Annotated[list[FetchableTopicResponse], versions("0+"), about("What was found in each topic.")] = []
    node_endpoints: Annotated[
        list[NodeEndpoint],
        versions("16+"),
        tag(0, "16+"),
        about("Where the leaders named in `current_leader` are reached."),
    ] = []
