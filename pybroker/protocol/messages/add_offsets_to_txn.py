"""AddOffsetsToTxn (25): adds the offsets of a group to a transaction."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, int32, int64, string, versions


class AddOffsetsToTxnRequest(Message, api_key=25, kind="request", versions="0-4", flexible="3+"):
    """Adds the group's partition of `__consumer_offsets` to the transaction."""

    transactional_id: Annotated[str, string, versions("0+"), about("The transactional id.")] = ""
    producer_id: Annotated[int, int64, versions("0+"), about("The producer's id.")] = 0
    producer_epoch: Annotated[int, int16, versions("0+"), about("The producer's epoch.")] = 0
    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""


class AddOffsetsToTxnResponse(Message, api_key=25, kind="response", versions="0-4", flexible="3+"):
    """Whether the partition was added."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
