"""EndTxn (26): commits or aborts a transaction."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, boolean, ignorable, int16, int32, int64, string, versions


class EndTxnRequest(Message, api_key=26, kind="request", versions="0-5", flexible="3+"):
    """Ends a transaction."""

    transactional_id: Annotated[str, string, versions("0+"), about("The transactional id.")] = ""
    producer_id: Annotated[int, int64, versions("0+"), about("The producer's id.")] = 0
    producer_epoch: Annotated[int, int16, versions("0+"), about("The producer's epoch.")] = 0
    committed: Annotated[bool, boolean, versions("0+"), about("True to commit, false to abort.")] = False


class EndTxnResponse(Message, api_key=26, kind="response", versions="0-5", flexible="3+"):
    """The result; from version 5 with the producer id and epoch for the next transaction."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    producer_id: Annotated[int, int64, versions("5+"), ignorable, about("The producer's id.")] = -1
    producer_epoch: Annotated[int, int16, versions("5+"), ignorable, about("The producer's epoch.")] = -1
