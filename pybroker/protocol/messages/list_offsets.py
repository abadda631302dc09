"""The messages of ListOffsets."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, ignorable, int8, int16, int32, int64, string, versions


class ListOffsetsPartition(Struct):
    """ListOffsetsPartition."""

    partition_index: Annotated[int, int32, versions("0+")] = 0
    current_leader_epoch: Annotated[int, int32, versions("4+"), ignorable] = -1
    timestamp: Annotated[int, int64, versions("0+")] = 0


class ListOffsetsTopic(Struct):
    """ListOffsetsTopic."""

    name: Annotated[str, string, versions("0+")] = ""
    partitions: Annotated[list[ListOffsetsPartition], versions("0+")] = []


class ListOffsetsRequest(Message, api_key=2, kind="request", versions="1-11", flexible="6+"):
    """ListOffsetsRequest."""

    replica_id: Annotated[int, int32, versions("0+")] = 0
    isolation_level: Annotated[int, int8, versions("2+")] = 0
    topics: Annotated[list[ListOffsetsTopic], versions("0+")] = []
    timeout_ms: Annotated[int, int32, versions("10+"), ignorable] = 0


class ListOffsetsPartitionResponse(Struct):
    """ListOffsetsPartitionResponse."""

    partition_index: Annotated[int, int32, versions("0+")] = 0
    error_code: Annotated[int, int16, versions("0+")] = 0
    timestamp: Annotated[int, int64, versions("1+")] = -1
    offset: Annotated[int, int64, versions("1+")] = -1
    leader_epoch: Annotated[int, int32, versions("4+")] = -1


class ListOffsetsTopicResponse(Struct):
    """ListOffsetsTopicResponse."""

    name: Annotated[str, string, versions("0+")] = ""
    partitions: Annotated[list[ListOffsetsPartitionResponse], versions("0+")] = []


class ListOffsetsResponse(Message, api_key=2, kind="response", versions="1-11", flexible="6+"):
    """ListOffsetsResponse."""

    throttle_time_ms: Annotated[int, int32, versions("2+"), ignorable] = 0
    topics: Annotated[list[ListOffsetsTopicResponse], versions("0+")] = []
