"""DescribeLogDirs (35): the log directories of a broker, and the replicas in them with their sizes."""

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
    int64,
    map_key,
    nullable,
    string,
    versions,
)


class DescribableLogDirTopic(Struct):
    """A requested topic."""

    topic: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("The partitions asked about.")] = []


class DescribeLogDirsRequest(Message, api_key=35, kind="request", versions="0-5", flexible="2+"):
    """Requests the log directories of a broker."""

    topics: Annotated[
        list[DescribableLogDirTopic] | None,
        versions("0+"),
        nullable("0+"),
        about("The topics asked about; null for all."),
    ] = []


class DescribeLogDirsPartition(Struct):
    """A replica in a log directory."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    partition_size: Annotated[int, int64, versions("0+"), about("Bytes of its segments.")] = 0
    offset_lag: Annotated[
        int,
        int64,
        versions("0+"),
        about("How far it is behind: of the high watermark, or of the replica that it will replace."),
    ] = 0
    is_future_key: Annotated[
        bool, boolean, versions("0+"), about("Whether it will replace the replica of another directory.")
    ] = False


class DescribeLogDirsTopic(Struct):
    """A topic with replicas in a log directory."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[DescribeLogDirsPartition], versions("0+"), about("Its replicas in this directory.")] = []


class DescribeLogDirsResult(Struct):
    """A log directory and the replicas in it."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    log_dir: Annotated[str, string, versions("0+"), about("Absolute path of the directory.")] = ""
    topics: Annotated[list[DescribeLogDirsTopic], versions("0+"), about("What lies in it.")] = []
    total_bytes: Annotated[int, int64, versions("4+"), ignorable, about("Size of the volume; -1 where unknown.")] = -1
    usable_bytes: Annotated[
        int, int64, versions("4+"), ignorable, about("Bytes free on the volume; -1 where unknown.")
    ] = -1
    is_cordoned: Annotated[bool, boolean, versions("5+"), ignorable, about("Whether it gets no new replicas.")] = False


class DescribeLogDirsResponse(Message, api_key=35, kind="response", versions="0-5", flexible="2+"):
    """A broker's log directories."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[
        int, int16, versions("3+"), ignorable, about("An `ErrorCode`; 0 where nothing went wrong.")
    ] = 0
    results: Annotated[list[DescribeLogDirsResult], versions("0+"), about("One result for each log directory.")] = []
