"""DescribeQuorum (55): the leader, voters and observers of the metadata log, and their log end offsets."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    ignorable,
    int16,
    int32,
    int64,
    map_key,
    nullable,
    string,
    uint16,
    uuid,
    versions,
)


class PartitionData(Struct):
    """A requested partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0


class TopicData(Struct):
    """A requested topic."""

    topic_name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[PartitionData], versions("0+"), about("Its partitions.")] = []


class DescribeQuorumRequest(Message, api_key=55, kind="request", versions="0-2", flexible="0+"):
    """Requests the state of the metadata quorum (KIP-595)."""

    topics: Annotated[list[TopicData], versions("0+"), about("The topics to describe.")] = []


class ReplicaState(Struct):
    """The replication progress of a voter or an observer."""

    replica_id: Annotated[int, int32, versions("0+"), about("The node's id.")] = 0
    replica_directory_id: Annotated[
        bytes, uuid, versions("2+"), about("Id of the directory of its metadata log; zero where it is not known.")
    ] = bytes(16)
    log_end_offset: Annotated[int, int64, versions("0+"), about("End of its log, -1 where it is not known.")] = 0
    last_fetch_timestamp: Annotated[
        int, int64, versions("1+"), ignorable, about("When it last fetched, ms since 1970; -1 where it is not known.")
    ] = -1
    last_caught_up_timestamp: Annotated[
        int,
        int64,
        versions("1+"),
        ignorable,
        about("When it last had all that its leader had, ms since 1970; -1 where it is not known."),
    ] = -1


class DescribedPartitionData(Struct):
    """The quorum of one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("2+"), nullable("2+"), ignorable, about("What went wrong, for people.")
    ] = ""
    leader_id: Annotated[int, int32, versions("0+"), about("The leader's id, -1 where there is none.")] = 0
    leader_epoch: Annotated[int, int32, versions("0+"), about("The newest leader epoch that is known.")] = 0
    high_watermark: Annotated[int, int64, versions("0+"), about("The high watermark.")] = 0
    current_voters: Annotated[list[ReplicaState], versions("0+"), about("The voters.")] = []
    observers: Annotated[list[ReplicaState], versions("0+"), about("Those that fetch and do not vote.")] = []


class DescribedTopicData(Struct):
    """The quorums of a topic's partitions."""

    topic_name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[DescribedPartitionData], versions("0+"), about("Its partitions.")] = []


class Listener(Struct):
    """A listener of a node of the quorum."""

    name: Annotated[str, string, versions("2+"), map_key, about("The listener's name.")] = ""
    host: Annotated[str, string, versions("2+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("2+"), about("Port to connect to.")] = 0


class Node(Struct):
    """A node of the quorum."""

    node_id: Annotated[int, int32, versions("2+"), map_key, about("The node's id.")] = 0
    listeners: Annotated[list[Listener], versions("2+"), about("Its listeners.")] = []


class DescribeQuorumResponse(Message, api_key=55, kind="response", versions="0-2", flexible="0+"):
    """The state of the metadata quorum."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("2+"), nullable("2+"), ignorable, about("What went wrong, for people.")
    ] = ""
    topics: Annotated[list[DescribedTopicData], versions("0+"), about("What was asked for.")] = []
    nodes: Annotated[list[Node], versions("2+"), about("The nodes of the quorum.")] = []
