"""DescribeTransactions (65): the state of transactional ids and their transactions."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, int64, map_key, string, versions


class DescribeTransactionsRequest(Message, api_key=65, kind="request", versions="0", flexible="0+"):
    """Requests the state of transactional ids (KIP-664)."""

    transactional_ids: Annotated[
        list[str], string, versions("0+"), about("The transactional ids that are asked for.")
    ] = []


class TopicData(Struct):
    """A topic and its partitions in the transaction."""

    topic: Annotated[str, string, versions("0+"), map_key, about("The topic's name.")] = ""
    partitions: Annotated[list[int], int32, versions("0+"), about("The partitions.")] = []


class TransactionState(Struct):
    """The state of a transactional id and its transaction."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    transactional_id: Annotated[str, string, versions("0+"), about("The transactional id.")] = ""
    transaction_state: Annotated[str, string, versions("0+"), about("The state's name, as `Ongoing`.")] = ""
    transaction_timeout_ms: Annotated[
        int, int32, versions("0+"), about("Open for so many milliseconds it is aborted.")
    ] = 0
    transaction_start_time_ms: Annotated[
        int, int64, versions("0+"), about("When it began, ms since 1970; -1 where none is open.")
    ] = 0
    producer_id: Annotated[int, int64, versions("0+"), about("The producer's id.")] = 0
    producer_epoch: Annotated[int, int16, versions("0+"), about("The producer's epoch.")] = 0
    topics: Annotated[list[TopicData], versions("0+"), about("The topics.")] = []


class DescribeTransactionsResponse(Message, api_key=65, kind="response", versions="0", flexible="0+"):
    """The state of each transactional id."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    transaction_states: Annotated[
        list[TransactionState], versions("0+"), about("One entry for each transactional id.")
    ] = []
