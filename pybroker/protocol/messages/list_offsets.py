"""ListOffsets (2): offsets by timestamp, and the first and last offset of a log. Version 0 is for Kafka 0.8 to 3."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int8, int16, int32, int64, string, versions


class OffsetTime(IntEnum):
    """Negative timestamps that select a position in the log."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """The record with the largest timestamp (KIP-734, version 7)."""
    EARLIEST_LOCAL = -4
    """The first record in the local log (KIP-405, version 8)."""
    LATEST_TIERED = -5
    """The last record in tiered storage (KIP-1005, version 9)."""
    EARLIEST_PENDING_UPLOAD = -6
    """The first record that is not yet uploaded to tiered storage (KIP-1023, version 11)."""


class ListOffsetsPartition(Struct):
    """A partition and the requested timestamp."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    current_leader_epoch: Annotated[
        int,
        int32,
        versions("4+"),
        ignorable,
        about("The leader epoch that the client knows, for fencing; -1 for none."),
    ] = -1
    timestamp: Annotated[
        int,
        int64,
        versions("0+"),
        about("Milliseconds, or one of -1 to -6: see `OffsetTime`."),
    ] = 0
    max_num_offsets: Annotated[int, int32, versions("0"), about("Most offsets to answer with.")] = 1


class ListOffsetsTopic(Struct):
    """A requested topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[ListOffsetsPartition], versions("0+"), about("The partitions asked about.")] = []


class ListOffsetsRequest(Message, api_key=2, kind="request", versions="0-11", flexible="6+"):
    """Requests offsets by timestamp."""

    replica_id: Annotated[int, int32, versions("0+"), about("Broker id of a follower; -1 for a client.")] = 0
    isolation_level: Annotated[int, int8, versions("2+"), about("0 read_uncommitted, 1 read_committed.")] = 0
    topics: Annotated[list[ListOffsetsTopic], versions("0+"), about("The topics asked about.")] = []
    timeout_ms: Annotated[
        int, int32, versions("10+"), ignorable, about("How long remote storage may take, in milliseconds.")
    ] = 0


class ListOffsetsPartitionResponse(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    old_style_offsets: Annotated[list[int], int64, versions("0"), about("The offsets found, the latest first.")] = []
    timestamp: Annotated[
        int, int64, versions("1+"), about("Timestamp of the record at that offset; -1 where there is none.")
    ] = -1
    offset: Annotated[int, int64, versions("1+"), about("The offset found; -1 where there is none.")] = -1
    leader_epoch: Annotated[int, int32, versions("4+"), about("Leader epoch of the record at that offset.")] = -1


class ListOffsetsTopicResponse(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[
        list[ListOffsetsPartitionResponse], versions("0+"), about("One result for each partition.")
    ] = []


class ListOffsetsResponse(Message, api_key=2, kind="response", versions="0-11", flexible="6+"):
    """The offset of each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("2+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[ListOffsetsTopicResponse], versions("0+"), about("One result for each topic.")] = []
