"""AllocateProducerIds (67): the controller allocates a block of producer ids to a broker."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    about,
    int16,
    int32,
    int64,
    versions,
)


class AllocateProducerIdsRequest(Message, api_key=67, kind="request", versions="0", flexible="0+"):
    """Requests the next block of producer ids (KIP-730)."""

    broker_id: Annotated[int, int32, versions("0+"), about("Id of the broker that asks.")] = 0
    broker_epoch: Annotated[int, int64, versions("0+"), about("Its broker epoch.")] = -1


class AllocateProducerIdsResponse(Message, api_key=67, kind="response", versions="0", flexible="0+"):
    """The allocated block of producer ids."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    producer_id_start: Annotated[int, int64, versions("0+"), about("The first producer id of the block.")] = 0
    producer_id_len: Annotated[int, int32, versions("0+"), about("How many producer ids it has.")] = 0
