"""OffsetDelete (47)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int16, int32, map_key, string, versions


class OffsetDeleteRequestPartition(Struct):
    """A partition to forget."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0


class OffsetDeleteRequestTopic(Struct):
    """A topic to forget."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[OffsetDeleteRequestPartition], versions("0+"), about("The partitions to forget.")] = []


class OffsetDeleteRequest(Message, api_key=47, kind="request", versions="0", flexible="none"):
    """Forgets how far a group has read."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    topics: Annotated[list[OffsetDeleteRequestTopic], versions("0+"), about("The topics to forget.")] = []


class OffsetDeleteResponsePartition(Struct):
    """What became of one partition."""

    partition_index: Annotated[int, int32, versions("0+"), map_key, about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class OffsetDeleteResponseTopic(Struct):
    """What became of one topic."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[
        list[OffsetDeleteResponsePartition], versions("0+"), about("One result for each partition.")
    ] = []


class OffsetDeleteResponse(Message, api_key=47, kind="response", versions="0", flexible="none"):
    """What became of the offsets, one by one."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    throttle_time_ms: Annotated[
        int, int32, versions("0+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[OffsetDeleteResponseTopic], versions("0+"), about("One result for each topic.")] = []
