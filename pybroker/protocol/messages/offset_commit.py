"""OffsetCommit (8): commits the offsets of a group, from version 10 by topic id."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    ignorable,
    int16,
    int32,
    int64,
    nullable,
    string,
    uuid,
    versions,
)


class OffsetCommitRequestPartition(Struct):
    """A partition and the offset to commit."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    committed_offset: Annotated[int, int64, versions("0+"), about("The next offset to read.")] = 0
    committed_leader_epoch: Annotated[
        int, int32, versions("6+"), ignorable, about("Leader epoch of the record before it; -1 where unknown.")
    ] = -1
    committed_metadata: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What the client wants to keep with it.")
    ] = ""


class OffsetCommitRequestTopic(Struct):
    """A topic with offsets to commit."""

    name: Annotated[str, string, versions("0-9"), ignorable, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("10+"), ignorable, about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[list[OffsetCommitRequestPartition], versions("0+"), about("The partitions committed.")] = []


class OffsetCommitRequest(Message, api_key=8, kind="request", versions="2-10", flexible="8+"):
    """Commits offsets of a group."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    generation_id_or_member_epoch: Annotated[
        int,
        int32,
        versions("1+"),
        ignorable,
        about("The generation, or the member's epoch (KIP-848); -1 outside of a group."),
    ] = -1
    member_id: Annotated[str, string, versions("1+"), ignorable, about("The member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("7+"), nullable("7+"), about("Set by a static member (KIP-345).")
    ] = None
    retention_time_ms: Annotated[
        int, int64, versions("2-4"), ignorable, about("How long to keep it, in milliseconds; -1 for the broker's time.")
    ] = -1
    topics: Annotated[list[OffsetCommitRequestTopic], versions("0+"), about("The topics committed.")] = []


class OffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class OffsetCommitResponseTopic(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0-9"), ignorable, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("10+"), ignorable, about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[
        list[OffsetCommitResponsePartition], versions("0+"), about("One result for each partition.")
    ] = []


class OffsetCommitResponse(Message, api_key=8, kind="response", versions="2-10", flexible="8+"):
    """The result for each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("3+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[OffsetCommitResponseTopic], versions("0+"), about("One result for each topic.")] = []
