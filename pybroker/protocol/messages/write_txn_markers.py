"""WriteTxnMarkers (27): transaction coordinators write commit and abort markers through partition leaders."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    ignorable,
    int8,
    int16,
    int32,
    int64,
    string,
    versions,
)


class WritableTxnMarkerTopic(Struct):
    """A topic and its partitions to write the marker to."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partition_indexes: Annotated[list[int], int32, versions("0+"), about("The partitions.")] = []


class WritableTxnMarker(Struct):
    """The marker of one transaction."""

    producer_id: Annotated[int, int64, versions("0+"), about("The producer's id.")] = 0
    producer_epoch: Annotated[int, int16, versions("0+"), about("The producer's epoch.")] = 0
    transaction_result: Annotated[bool, boolean, versions("0+"), about("True for a commit, false for an abort.")] = (
        False
    )
    topics: Annotated[list[WritableTxnMarkerTopic], versions("0+"), about("The topics.")] = []
    coordinator_epoch: Annotated[
        int, int32, versions("0+"), about("Leader epoch of the coordinator's partition of `__transaction_state`.")
    ] = 0
    transaction_version: Annotated[
        int,
        int8,
        versions("2+"),
        ignorable,
        about("The `transaction.version` that the transaction follows (KIP-1228)."),
    ] = 0


class WriteTxnMarkersRequest(Message, api_key=27, kind="request", versions="1-2", flexible="1+"):
    """Writes transaction markers to partitions."""

    markers: Annotated[list[WritableTxnMarker], versions("0+"), about("One for each transaction that ends.")] = []


class WritableTxnMarkerPartitionResult(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), about("Number of the partition.")] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class WritableTxnMarkerTopicResult(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0+"), about("The topic's name.")] = ""
    partitions: Annotated[list[WritableTxnMarkerPartitionResult], versions("0+"), about("The partitions.")] = []


class WritableTxnMarkerResult(Struct):
    """The result for one marker."""

    producer_id: Annotated[int, int64, versions("0+"), about("The producer's id.")] = 0
    topics: Annotated[list[WritableTxnMarkerTopicResult], versions("0+"), about("The topics.")] = []


class WriteTxnMarkersResponse(Message, api_key=27, kind="response", versions="1-2", flexible="1+"):
    """The result for each marker."""

    markers: Annotated[list[WritableTxnMarkerResult], versions("0+"), about("One result for each marker.")] = []
