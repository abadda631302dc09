"""ListTransactions (66): the transactional ids that a coordinator knows."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, int64, nullable, string, versions


class ListTransactionsRequest(Message, api_key=66, kind="request", versions="0-2", flexible="0+"):
    """Requests the transactional ids that match filters (KIP-664)."""

    state_filters: Annotated[
        list[str], string, versions("0+"), about("Names of the states that are asked for; empty for all.")
    ] = []
    producer_id_filters: Annotated[
        list[int], int64, versions("0+"), about("The producer ids that are asked for; empty for all.")
    ] = []
    duration_filter: Annotated[
        int,
        int64,
        versions("1+"),
        about("Only transactions that have been open for longer, in milliseconds; negative for all."),
    ] = -1
    transactional_id_pattern: Annotated[
        str | None,
        string,
        versions("2+"),
        nullable("2+"),
        about("A regular expression that transactional ids match (KIP-1152); null or empty for all."),
    ] = None


class TransactionState(Struct):
    """A transactional id and the state of its transaction."""

    transactional_id: Annotated[str, string, versions("0+"), about("The transactional id.")] = ""
    producer_id: Annotated[int, int64, versions("0+"), about("The producer's id.")] = 0
    transaction_state: Annotated[str, string, versions("0+"), about("The state's name, as `Ongoing`.")] = ""


class ListTransactionsResponse(Message, api_key=66, kind="response", versions="0-2", flexible="0+"):
    """The matching transactional ids."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    unknown_state_filters: Annotated[
        list[str], string, versions("0+"), about("The names among the filters that are no state's.")
    ] = []
    transaction_states: Annotated[
        list[TransactionState], versions("0+"), about("One entry for each transactional id.")
    ] = []
