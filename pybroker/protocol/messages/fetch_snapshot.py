"""FetchSnapshot (59): fetches a snapshot of the metadata log in parts."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
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
    uint16,
    uuid,
    versions,
)


class SnapshotId(Struct):
    """The id of a snapshot."""

    end_offset: Annotated[int, int64, versions("0+"), about("End of the log that it stands for, exclusive.")] = 0
    epoch: Annotated[int, int32, versions("0+"), about("Epoch of the last record before that end.")] = 0


class PartitionSnapshot(Struct):
    """A partition and the part of its snapshot to fetch."""

    partition: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    current_leader_epoch: Annotated[
        int, int32, versions("0+"), about("The leader epoch that the follower knows, -1 for none.")
    ] = 0
    snapshot_id: Annotated[SnapshotId, versions("0+"), about("The snapshot to fetch.")] = field(
        default_factory=SnapshotId
    )
    position: Annotated[int, int64, versions("0+"), about("Where in its file to begin, in bytes.")] = 0
    replica_directory_id: Annotated[
        bytes, uuid, versions("1+"), tag(0, "1+"), ignorable, about("Id of the follower's metadata log directory.")
    ] = bytes(16)


class TopicSnapshot(Struct):
    """A topic and its partitions."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[PartitionSnapshot], versions("0+"), about("Its partitions.")] = []


class FetchSnapshotRequest(Message, api_key=59, kind="request", versions="0-1", flexible="0+"):
    """Requests a part of a snapshot from the leader of the quorum (KIP-630)."""

    cluster_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), tag(0, "0+"), about("Id of the cluster, null for any.")
    ] = None
    replica_id: Annotated[int, int32, versions("0+"), about("Id of the node that fetches.")] = -1
    max_bytes: Annotated[int, int32, versions("0+"), about("How many bytes to return at most.")] = 0x7FFFFFFF
    topics: Annotated[list[TopicSnapshot], versions("0+"), about("The topics to fetch.")] = []


class LeaderIdAndEpoch(Struct):
    """The leader and its epoch."""

    leader_id: Annotated[int, int32, versions("0+"), about("The leader's id, -1 where it is not known.")] = 0
    leader_epoch: Annotated[int, int32, versions("0+"), about("The newest leader epoch that is known.")] = 0


class FetchedPartitionSnapshot(Struct):
    """A part of a partition's snapshot."""

    index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    snapshot_id: Annotated[SnapshotId, versions("0+"), about("The snapshot.")] = field(default_factory=SnapshotId)
    current_leader: Annotated[LeaderIdAndEpoch, versions("0+"), tag(0, "0+"), about("Who leads.")] = field(
        default_factory=LeaderIdAndEpoch
    )
    size: Annotated[int, int64, versions("0+"), about("Bytes of the whole snapshot.")] = 0
    position: Annotated[int, int64, versions("0+"), about("Where in its file the piece begins.")] = 0
    unaligned_records: Annotated[
        bytes, records, versions("0+"), about("The piece, which may begin and end within a batch.")
    ] = b""


class FetchedTopicSnapshot(Struct):
    """A topic and its partitions."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[FetchedPartitionSnapshot], versions("0+"), about("Its partitions.")] = []


class NodeEndpoint(Struct):
    """A leader and its address."""

    node_id: Annotated[int, int32, versions("1+"), map_key, about("The node's id.")] = 0
    host: Annotated[str, string, versions("1+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("1+"), about("Port to connect to.")] = 0


class FetchSnapshotResponse(Message, api_key=59, kind="response", versions="0-1", flexible="0+"):
    """The requested part of the snapshot."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    topics: Annotated[list[FetchedTopicSnapshot], versions("0+"), about("The topics fetched.")] = []
    node_endpoints: Annotated[
        list[NodeEndpoint], versions("1+"), tag(0, "1+"), about("Where the leaders named above are reached.")
    ] = []
