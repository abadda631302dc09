"""AlterReplicaLogDirs (34): moves replicas between the log directories of one broker."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, map_key, string, versions


class AlterReplicaLogDirTopic(Struct):
    """A topic with partitions to move."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("The partitions to move.")] = []


class AlterReplicaLogDir(Struct):
    """A log directory and the partitions to move there."""

    path: Annotated[str, string, versions("0+"), map_key, about("Absolute path of the directory.")] = ""
    topics: Annotated[list[AlterReplicaLogDirTopic], versions("0+"), about("What is to move there.")] = []


class AlterReplicaLogDirsRequest(Message, api_key=34, kind="request", versions="1-2", flexible="2+"):
    """Requests a broker to move replicas between its log directories."""

    dirs: Annotated[list[AlterReplicaLogDir], versions("0+"), about("The moves, by target.")] = []


class AlterReplicaLogDirPartitionResult(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class AlterReplicaLogDirTopicResult(Struct):
    """The result for one topic."""

    topic_name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[
        list[AlterReplicaLogDirPartitionResult], versions("0+"), about("One result for each partition.")
    ] = []


class AlterReplicaLogDirsResponse(Message, api_key=34, kind="response", versions="1-2", flexible="2+"):
    """The result for each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    results: Annotated[list[AlterReplicaLogDirTopicResult], versions("0+"), about("One result for each topic.")] = []
