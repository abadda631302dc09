"""AssignReplicasToDirs (73): a broker reports the log directories of its replicas."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    int16,
    int32,
    int64,
    uuid,
    versions,
)


class PartitionData(Struct):
    """A partition with a replica in the log directory."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0


class TopicData(Struct):
    """A topic with replicas in the log directory."""

    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = bytes(16)
    partitions: Annotated[list[PartitionData], versions("0+"), about("Its partitions.")] = []


class DirectoryData(Struct):
    """A log directory and the replicas in it."""

    id: Annotated[bytes, uuid, versions("0+"), about("The directory's id.")] = bytes(16)
    topics: Annotated[list[TopicData], versions("0+"), about("The topics that lie there.")] = []


class AssignReplicasToDirsRequest(Message, api_key=73, kind="request", versions="0", flexible="0+"):
    """Reports the log directories of replicas to the controller (KIP-858)."""

    broker_id: Annotated[int, int32, versions("0+"), about("Id of the broker that reports.")] = 0
    broker_epoch: Annotated[int, int64, versions("0+"), about("Its broker epoch.")] = -1
    directories: Annotated[list[DirectoryData], versions("0+"), about("The log directories.")] = []


class AssignedPartitionData(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class AssignedTopicData(Struct):
    """The result for one topic."""

    topic_id: Annotated[bytes, uuid, versions("0+"), about("The topic's id.")] = bytes(16)
    partitions: Annotated[list[AssignedPartitionData], versions("0+"), about("Its partitions.")] = []


class AssignedDirectoryData(Struct):
    """The result for one log directory."""

    id: Annotated[bytes, uuid, versions("0+"), about("The directory's id.")] = bytes(16)
    topics: Annotated[list[AssignedTopicData], versions("0+"), about("The topics that lie there.")] = []


class AssignReplicasToDirsResponse(Message, api_key=73, kind="response", versions="0", flexible="0+"):
    """The result for each log directory."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    directories: Annotated[list[AssignedDirectoryData], versions("0+"), about("The log directories.")] = []
