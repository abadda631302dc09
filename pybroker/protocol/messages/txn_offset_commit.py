"""TxnOffsetCommit (28): commits offsets of a group as part of a transaction."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int16, int32, int64, nullable, string, versions


class TxnOffsetCommitRequestPartition(Struct):
    """A partition and the offset to commit."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    committed_offset: Annotated[int, int64, versions("0+"), about("The next offset to read.")] = 0
    committed_leader_epoch: Annotated[
        int, int32, versions("2+"), ignorable, about("Leader epoch of the record before it; -1 where unknown.")
    ] = -1
    committed_metadata: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What the client wants to keep with it.")
    ] = ""


class TxnOffsetCommitRequestTopic(Struct):
    """A topic with offsets to commit."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[TxnOffsetCommitRequestPartition], versions("0+"), about("The partitions.")] = []


class TxnOffsetCommitRequest(Message, api_key=28, kind="request", versions="0-5", flexible="3+"):
    """Adds offsets to a transaction. They take effect when it commits."""

    transactional_id: Annotated[str, string, versions("0+"), about("The transactional id.")] = ""
    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    producer_id: Annotated[int, int64, versions("0+"), about("The producer's id.")] = 0
    producer_epoch: Annotated[int, int16, versions("0+"), about("The producer's epoch.")] = 0
    generation_id: Annotated[
        int, int32, versions("3+"), about("The generation, or the member's epoch (KIP-848); -1 outside of a group.")
    ] = -1
    member_id: Annotated[str, string, versions("3+"), about("The member; empty outside of a group.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("3+"), nullable("3+"), about("Set by a static member (KIP-345).")
    ] = None
    topics: Annotated[list[TxnOffsetCommitRequestTopic], versions("0+"), about("The topics.")] = []


class TxnOffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class TxnOffsetCommitResponseTopic(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[TxnOffsetCommitResponsePartition], versions("0+"), about("The partitions.")] = []


class TxnOffsetCommitResponse(Message, api_key=28, kind="response", versions="0-5", flexible="3+"):
    """The result for each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[TxnOffsetCommitResponseTopic], versions("0+"), about("The topics.")] = []
