"""AlterPartitionReassignments (45): changes the replicas of existing partitions."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    ignorable,
    int16,
    int32,
    nullable,
    string,
    versions,
)


class ReassignablePartition(Struct):
    """A partition to reassign, or whose reassignment is cancelled."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    replicas: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        about("Its replicas from now on, the preferred leader first; null to cancel what is in progress."),
    ] = None


class ReassignableTopic(Struct):
    """A topic and its partitions to reassign."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[ReassignablePartition], versions("0+"), about("The partitions to reassign.")] = []


class AlterPartitionReassignmentsRequest(Message, api_key=45, kind="request", versions="0-1", flexible="0+"):
    """Requests the controller to start or cancel reassignments (KIP-455)."""

    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 60000
    allow_replication_factor_change: Annotated[
        bool, boolean, versions("1+"), about("Whether a partition may get more replicas, or fewer, than it has.")
    ] = True
    topics: Annotated[list[ReassignableTopic], versions("0+"), about("The topics to reassign.")] = []


class ReassignablePartitionResponse(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""


class ReassignableTopicResponse(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[
        list[ReassignablePartitionResponse], versions("0+"), about("One result for each partition.")
    ] = []


class AlterPartitionReassignmentsResponse(Message, api_key=45, kind="response", versions="0-1", flexible="0+"):
    """The result for each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    allow_replication_factor_change: Annotated[
        bool, boolean, versions("1+"), ignorable, about("Whether the request let the number of replicas change.")
    ] = True
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    responses: Annotated[list[ReassignableTopicResponse], versions("0+"), about("One result for each topic.")] = []
