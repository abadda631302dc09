"""The record TransactionLog (0) of `__transaction_state`: the state of a transactional id and its transaction."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int8, int16, int32, int64, nullable, string, tag, versions


class TransactionLogKey(Message, api_key=0, kind="coordinator-key", versions="0", flexible="none"):
    """The transactional id."""

    transactional_id: Annotated[str, string, versions("0"), about("The transactional id.")] = ""


class PartitionsSchema(Struct):
    """A topic and its partitions in the transaction."""

    topic: Annotated[str, string, versions("0+"), about("The topic.")] = ""
    partition_ids: Annotated[list[int], int32, versions("0+"), about("The partitions.")] = []


class TransactionLogValue(Message, api_key=0, kind="coordinator-value", versions="0-1", flexible="1+"):
    """The producer and the transaction of the transactional id."""

    producer_id: Annotated[int, int64, versions("0+"), about("The producer id in use.")] = 0
    previous_producer_id: Annotated[
        int, int64, versions("1+"), tag(0, "1+"), about("The producer id of the transaction before (KIP-890).")
    ] = -1
    next_producer_id: Annotated[
        int,
        int64,
        versions("1+"),
        tag(1, "1+"),
        about("The producer id given out when the epochs of this one are used up (KIP-890)."),
    ] = -1
    producer_epoch: Annotated[int, int16, versions("0+"), about("The producer's epoch.")] = 0
    next_producer_epoch: Annotated[
        int, int16, versions("1+"), tag(3, "1+"), about("The epoch that goes with the next producer id.")
    ] = -1
    transaction_timeout_ms: Annotated[
        int, int32, versions("0+"), about("Open for so many milliseconds it is aborted.")
    ] = 0
    transaction_status: Annotated[int, int8, versions("0+"), about("The state, by number.")] = 0
    transaction_partitions: Annotated[
        list[PartitionsSchema] | None, versions("0+"), nullable("0+"), about("What the transaction has written to.")
    ] = []
    transaction_last_update_timestamp_ms: Annotated[
        int, int64, versions("0+"), about("When its state changed last, in milliseconds.")
    ] = 0
    transaction_start_timestamp_ms: Annotated[int, int64, versions("0+"), about("When it began, in milliseconds.")] = 0
    client_transaction_version: Annotated[
        int, int16, versions("1+"), tag(2, "1+"), about("The transaction version that the client follows (KIP-890).")
    ] = 0
