"""AlterPartitionReassignments (45): other replicas for standing partitions."""

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
    """A partition to reassign."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    replicas: Annotated[
        list[int] | None,
        int32,
        versions("0+"),
        nullable("0+"),
        about("Its replicas from now on, the preferred leader first; null to cancel what is in progress."),
    ] = None


class ReassignableTopic(Struct):
    """A topic whose partitions are to be reassigned."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[ReassignablePartition], versions("0+"), about("The partitions to reassign.")] = []


class AlterPartitionReassignmentsRequest(Message, api_key=45, kind="request", versions="0-1", flexible="0+"):
    """Asks the controller for reassignments, or to cancel them (KIP-455)."""

    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 60000
    allow_replication_factor_change: Annotated[
        bool, boolean, versions("1+"), about("Whether a partition may get more replicas, or fewer, than it has.")
    ] = True
    topics: Annotated[list[ReassignableTopic], versions("0+"), about("The topics to reassign.")] = []


class ReassignablePartitionResponse(Struct):
    """What became of one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""


class ReassignableTopicResponse(Struct):
    """What became of one topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[
        list[ReassignablePartitionResponse], versions("0+"), about("One result for each partition.")
    ] = []


class AlterPartitionReassignmentsResponse(Message, api_key=45, kind="response", versions="0-1", flexible="0+"):
    """What became of the reassignments, one by one."""

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
