"""OffsetForLeaderEpoch (23): the end offsets of leader epochs, to detect log truncation."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int16, int32, int64, map_key, string, versions


class OffsetForLeaderPartition(Struct):
    """A partition and the requested leader epoch."""

    partition: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    current_leader_epoch: Annotated[
        int,
        int32,
        versions("2+"),
        ignorable,
        about("The leader epoch that the client knows, for fencing; -1 for none."),
    ] = -1
    leader_epoch: Annotated[int, int32, versions("0+"), about("The epoch whose end is asked for.")] = 0


class OffsetForLeaderTopic(Struct):
    """A requested topic."""

    topic: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[OffsetForLeaderPartition], versions("0+"), about("The partitions asked about.")] = []


class OffsetForLeaderEpochRequest(Message, api_key=23, kind="request", versions="2-4", flexible="4+"):
    """Requests the end offsets of leader epochs (KIP-101, KIP-320)."""

    replica_id: Annotated[
        int, int32, versions("3+"), ignorable, about("Broker id of a follower; -1 for a consumer.")
    ] = -2
    topics: Annotated[list[OffsetForLeaderTopic], versions("0+"), about("The topics asked about.")] = []


class EpochEndOffset(Struct):
    """A leader epoch and its end offset."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    partition: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    leader_epoch: Annotated[
        int, int32, versions("1+"), ignorable, about("The largest epoch not above the one asked for.")
    ] = -1
    end_offset: Annotated[int, int64, versions("0+"), about("Where that epoch ends.")] = -1


class OffsetForLeaderTopicResult(Struct):
    """The result for one topic."""

    topic: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[EpochEndOffset], versions("0+"), about("One result for each partition.")] = []


class OffsetForLeaderEpochResponse(Message, api_key=23, kind="response", versions="2-4", flexible="4+"):
    """The end offset of each requested leader epoch."""

    throttle_time_ms: Annotated[
        int, int32, versions("2+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[OffsetForLeaderTopicResult], versions("0+"), about("One result for each topic.")] = []
