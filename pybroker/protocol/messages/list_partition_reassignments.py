"""ListPartitionReassignments (46): the reassignments that are in progress."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, nullable, string, versions


class ListPartitionReassignmentsTopics(Struct):
    """Partitions of a topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partition_indexes: Annotated[list[int], int32, versions("0+"), about("Its partitions.")] = []


class ListPartitionReassignmentsRequest(Message, api_key=46, kind="request", versions="0", flexible="0+"):
    """Requests the reassignments in progress from the controller (KIP-455)."""

    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 60000
    topics: Annotated[
        list[ListPartitionReassignmentsTopics] | None,
        versions("0+"),
        nullable("0+"),
        about("Which partitions to list; null for every partition."),
    ] = None


class OngoingPartitionReassignment(Struct):
    """The reassignment of one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    replicas: Annotated[
        list[int], int32, versions("0+"), about("Every replica, with those that are added and taken away.")
    ] = []
    adding_replicas: Annotated[list[int], int32, versions("0+"), about("The replicas that are added.")] = []
    removing_replicas: Annotated[list[int], int32, versions("0+"), about("The replicas that are taken away.")] = []


class OngoingTopicReassignment(Struct):
    """A topic and the reassignments of its partitions."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[
        list[OngoingPartitionReassignment], versions("0+"), about("Its partitions that are being reassigned.")
    ] = []


class ListPartitionReassignmentsResponse(Message, api_key=46, kind="response", versions="0", flexible="0+"):
    """The reassignments in progress."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    topics: Annotated[list[OngoingTopicReassignment], versions("0+"), about("Topics with any in progress.")] = []
