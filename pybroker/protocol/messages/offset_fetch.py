"""OffsetFetch (9): fetches committed offsets, from version 8 of several groups, from version 10 by topic id."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    boolean,
    ignorable,
    int16,
    int32,
    int64,
    nullable,
    string,
    uuid,
    versions,
)

FIRST_VERSION_WITH_MANY_GROUPS = 8


class OffsetFetchRequestTopic(Struct):
    """A requested topic, up to version 7."""

    name: Annotated[str, string, versions("0-7"), about("The topic's name.")] = ""
    partition_indexes: Annotated[list[int], int32, versions("0-7"), about("The partitions asked about.")] = []


class OffsetFetchRequestTopics(Struct):
    """A requested topic, from version 8."""

    name: Annotated[str, string, versions("8-9"), ignorable, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("10+"), ignorable, about("The topic's id.")] = ZERO_UUID
    partition_indexes: Annotated[list[int], int32, versions("8+"), about("The partitions asked about.")] = []


class OffsetFetchRequestGroup(Struct):
    """A requested group."""

    group_id: Annotated[str, string, versions("8+"), about("The group.")] = ""
    member_id: Annotated[str | None, string, versions("9+"), nullable("9+"), ignorable, about("The member.")] = None
    member_epoch: Annotated[
        int, int32, versions("9+"), ignorable, about("The member's epoch (KIP-848); -1 outside of a group.")
    ] = -1
    topics: Annotated[
        list[OffsetFetchRequestTopics] | None,
        versions("8+"),
        nullable("8+"),
        about("The topics asked about; null for all."),
    ] = []


class OffsetFetchRequest(Message, api_key=9, kind="request", versions="1-10", flexible="6+"):
    """Requests the committed offsets of groups."""

    group_id: Annotated[str, string, versions("0-7"), about("The group.")] = ""
    topics: Annotated[
        list[OffsetFetchRequestTopic] | None,
        versions("0-7"),
        nullable("2-7"),
        about("The topics asked about; null for all."),
    ] = []
    groups: Annotated[list[OffsetFetchRequestGroup], versions("8+"), about("The groups asked about.")] = []
    require_stable: Annotated[
        bool, boolean, versions("7+"), about("Whether to refuse offsets that a transaction may still change (KIP-447).")
    ] = False


class OffsetFetchResponsePartition(Struct):
    """The committed offset of one partition, up to version 7."""

    partition_index: Annotated[int, int32, versions("0-7"), about("Number of the partition.")] = 0
    committed_offset: Annotated[int, int64, versions("0-7"), about("The next offset to read; -1 for none.")] = 0
    committed_leader_epoch: Annotated[
        int, int32, versions("5-7"), ignorable, about("Leader epoch of the record before it; -1 where unknown.")
    ] = -1
    metadata: Annotated[
        str | None, string, versions("0-7"), nullable("0-7"), about("What the client kept with it.")
    ] = ""
    error_code: Annotated[int, int16, versions("0-7"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class OffsetFetchResponseTopic(Struct):
    """The committed offsets of one topic, up to version 7."""

    name: Annotated[str, string, versions("0-7"), about("The topic's name.")] = ""
    partitions: Annotated[
        list[OffsetFetchResponsePartition], versions("0-7"), about("One result for each partition.")
    ] = []


class OffsetFetchResponsePartitions(Struct):
    """The committed offset of one partition, from version 8."""

    partition_index: Annotated[int, int32, versions("8+"), about("Number of the partition.")] = 0
    committed_offset: Annotated[int, int64, versions("8+"), about("The next offset to read; -1 for none.")] = 0
    committed_leader_epoch: Annotated[
        int, int32, versions("8+"), ignorable, about("Leader epoch of the record before it; -1 where unknown.")
    ] = -1
    metadata: Annotated[str | None, string, versions("8+"), nullable("8+"), about("What the client kept with it.")] = ""
    error_code: Annotated[int, int16, versions("8+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class OffsetFetchResponseTopics(Struct):
    """The committed offsets of one topic, from version 8."""

    name: Annotated[str, string, versions("8-9"), ignorable, about("The topic's name.")] = ""
    topic_id: Annotated[bytes, uuid, versions("10+"), ignorable, about("The topic's id.")] = ZERO_UUID
    partitions: Annotated[
        list[OffsetFetchResponsePartitions], versions("8+"), about("One result for each partition.")
    ] = []


class OffsetFetchResponseGroup(Struct):
    """The committed offsets of one group."""

    group_id: Annotated[str, string, versions("8+"), about("The group.")] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], versions("8+"), about("One result for each topic.")] = []
    error_code: Annotated[int, int16, versions("8+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class OffsetFetchResponse(Message, api_key=9, kind="response", versions="1-10", flexible="6+"):
    """The committed offsets of groups."""

    throttle_time_ms: Annotated[
        int, int32, versions("3+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], versions("0-7"), about("One result for each topic.")] = []
    error_code: Annotated[
        int, int16, versions("2-7"), ignorable, about("An `ErrorCode`; 0 where nothing went wrong.")
    ] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], versions("8+"), about("One result for each group.")] = []
