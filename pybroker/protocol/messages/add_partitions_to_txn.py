"""AddPartitionsToTxn (24): adds partitions to a transaction, or verifies that they are in it."""

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
    string,
    versions,
)


class AddPartitionsToTxnTopic(Struct):
    """A topic and its partitions."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("The partitions.")] = []


class AddPartitionsToTxnTransaction(Struct):
    """A transaction and the partitions to add or verify."""

    transactional_id: Annotated[str, string, versions("4+"), map_key, about("The transactional id.")] = ""
    producer_id: Annotated[int, int64, versions("4+"), about("The producer's id.")] = 0
    producer_epoch: Annotated[int, int16, versions("4+"), about("The producer's epoch.")] = 0
    verify_only: Annotated[
        bool, boolean, versions("4+"), about("Whether it is only asked if they are in the transaction (KIP-890).")
    ] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], versions("4+"), about("The topics.")] = []


class AddPartitionsToTxnRequest(Message, api_key=24, kind="request", versions="0-5", flexible="3+"):
    """Adds partitions to transactions before their first records are written, or verifies them."""

    transactions: Annotated[
        list[AddPartitionsToTxnTransaction],
        versions("4+"),
        about("One entry for each transaction; brokers ask for several."),
    ] = []
    v3_and_below_transactional_id: Annotated[str, string, versions("0-3"), about("The transactional id.")] = ""
    v3_and_below_producer_id: Annotated[int, int64, versions("0-3"), about("The producer's id.")] = 0
    v3_and_below_producer_epoch: Annotated[int, int16, versions("0-3"), about("The producer's epoch.")] = 0
    v3_and_below_topics: Annotated[
        list[AddPartitionsToTxnTopic], versions("0-3"), about("What the transaction is about to write to.")
    ] = []


class AddPartitionsToTxnPartitionResult(Struct):
    """The result for one partition."""

    partition_index: Annotated[int, int32, versions("0+"), map_key, about("Number of the partition.")] = 0
    partition_error_code: Annotated[
        int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")
    ] = 0


class AddPartitionsToTxnTopicResult(Struct):
    """The result for one topic."""

    name: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    results_by_partition: Annotated[
        list[AddPartitionsToTxnPartitionResult], versions("0+"), about("One result for each partition.")
    ] = []


class AddPartitionsToTxnResult(Struct):
    """The result for one transaction."""

    transactional_id: Annotated[str, string, versions("4+"), map_key, about("The transactional id.")] = ""
    topic_results: Annotated[
        list[AddPartitionsToTxnTopicResult], versions("4+"), about("One result for each topic.")
    ] = []


class AddPartitionsToTxnResponse(Message, api_key=24, kind="response", versions="0-5", flexible="3+"):
    """The result for each partition, by transaction from version 4."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[
        int, int16, versions("4+"), ignorable, about("An `ErrorCode`; 0 where nothing went wrong.")
    ] = 0
    results_by_transaction: Annotated[
        list[AddPartitionsToTxnResult], versions("4+"), about("One result for each transaction.")
    ] = []
    results_by_topic_v3_and_below: Annotated[
        list[AddPartitionsToTxnTopicResult], versions("0-3"), about("One result for each topic.")
    ] = []
