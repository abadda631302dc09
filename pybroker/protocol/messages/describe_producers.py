"""DescribeProducers (61): the active producers of partitions."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, int64, nullable, string, versions


class TopicRequest(Struct):
    """A topic and its partitions."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partition_indexes: Annotated[list[int], int32, versions("0+"), about("The partitions.")] = []


class DescribeProducersRequest(Message, api_key=61, kind="request", versions="0", flexible="0+"):
    """Requests the active producers of partitions (KIP-664)."""

    topics: Annotated[list[TopicRequest], versions("0+"), about("The topics.")] = []


class ProducerState(Struct):
    """The state of a producer in one partition."""

    producer_id: Annotated[int, int64, versions("0+"), about("The producer's id.")] = 0
    producer_epoch: Annotated[int, int32, versions("0+"), about("The producer's epoch.")] = 0
    last_sequence: Annotated[int, int32, versions("0+"), about("Sequence number of its last record; -1 for none.")] = -1
    last_timestamp: Annotated[
        int, int64, versions("0+"), about("When it wrote last, ms since 1970; -1 for never.")
    ] = -1
    coordinator_epoch: Annotated[
        int, int32, versions("0+"), about("Epoch of the coordinator that wrote its last marker; -1 for none.")
    ] = 0
    current_txn_start_offset: Annotated[
        int, int64, versions("0+"), about("First offset of its open transaction; -1 where none is open.")
    ] = -1


class PartitionResponse(Struct):
    """The producers of one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None,
        string,
        versions("0+"),
        nullable("0+"),
        about("What went wrong, in words; null where the code says all."),
    ] = None
    active_producers: Annotated[
        list[ProducerState], versions("0+"), about("The producers that the partition remembers.")
    ] = []


class TopicResponse(Struct):
    """A topic and the producers of its partitions."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[PartitionResponse], versions("0+"), about("The partitions.")] = []


class DescribeProducersResponse(Message, api_key=61, kind="response", versions="0", flexible="0+"):
    """The producers of each partition."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    topics: Annotated[list[TopicResponse], versions("0+"), about("The topics.")] = []
