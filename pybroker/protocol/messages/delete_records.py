"""DeleteRecords (21): deletes records before an offset."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, int64, map_key, string, versions


class DeleteRecordsPartition(Struct):
    """A partition and its new log start offset."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    offset: Annotated[int, int64, versions("0+"), about("The new start of the log; -1 for the high watermark.")] = 0


class DeleteRecordsTopic(Struct):
    """A topic with partitions to delete records from."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[DeleteRecordsPartition], versions("0+"), about("The partitions to cut.")] = []


class DeleteRecordsRequest(Message, api_key=21, kind="request", versions="0-2", flexible="2+"):
    """Requests partition leaders to delete the records before an offset."""

    topics: Annotated[list[DeleteRecordsTopic], versions("0+"), about("The topics to cut.")] = []
    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the broker may take, in milliseconds.")] = 0


class DeleteRecordsPartitionResult(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), map_key, about("Number of the partition.")] = 0
    low_watermark: Annotated[int, int64, versions("0+"), about("The new start of the log; -1 on an error.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class DeleteRecordsTopicResult(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[
        list[DeleteRecordsPartitionResult], versions("0+"), about("One result for each partition.")
    ] = []


class DeleteRecordsResponse(Message, api_key=21, kind="response", versions="0-2", flexible="2+"):
    """The result for each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[DeleteRecordsTopicResult], versions("0+"), about("One result for each topic.")] = []
