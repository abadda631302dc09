"""ElectLeaders (43): triggers preferred and unclean leader elections."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int8, int16, int32, map_key, nullable, string, versions


class TopicPartitions(Struct):
    """Partitions of a topic."""

    topic: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("Its partitions.")] = []


class ElectLeadersRequest(Message, api_key=43, kind="request", versions="0-2", flexible="2+"):
    """Requests the controller to elect leaders."""

    election_type: Annotated[int, int8, versions("1+"), about("0 preferred, 1 unclean.")] = 0
    topic_partitions: Annotated[
        list[TopicPartitions] | None, versions("0+"), nullable("0+"), about("Where to elect; null for every partition.")
    ] = []
    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 60000


class PartitionResult(Struct):
    """The result for one partition."""

    partition_id: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""


class ReplicaElectionResult(Struct):
    """The result for one topic."""

    topic: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partition_result: Annotated[list[PartitionResult], versions("0+"), about("One result for each partition.")] = []


class ElectLeadersResponse(Message, api_key=43, kind="response", versions="0-2", flexible="2+"):
    """The result for each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("1+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    replica_election_results: Annotated[
        list[ReplicaElectionResult], versions("0+"), about("One result for each topic.")
    ] = []
