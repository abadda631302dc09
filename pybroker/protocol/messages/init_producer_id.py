"""InitProducerId (22): the producer id and epoch of an idempotent or transactional producer."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, boolean, ignorable, int16, int32, int64, nullable, string, versions


class InitProducerIdRequest(Message, api_key=22, kind="request", versions="0-6", flexible="2+"):
    """Requests a producer id and epoch, before the first idempotent produce."""

    transactional_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Set by a transactional producer.")
    ] = ""
    transaction_timeout_ms: Annotated[
        int, int32, versions("0+"), about("After this many idle milliseconds the coordinator aborts the transaction.")
    ] = 0
    producer_id: Annotated[
        int, int64, versions("3+"), about("The id the producer has already; -1 for none (KIP-360).")
    ] = -1
    producer_epoch: Annotated[
        int, int16, versions("3+"), about("The epoch the producer has already; -1 for none.")
    ] = -1
    enable_2pc: Annotated[
        bool, boolean, versions("6+"), about("Whether the transaction takes part in two-phase commit (KIP-939).")
    ] = False
    keep_prepared_txn: Annotated[
        bool, boolean, versions("6+"), about("Whether a prepared transaction survives this call (KIP-939).")
    ] = False


class InitProducerIdResponse(Message, api_key=22, kind="response", versions="0-6", flexible="2+"):
    """The producer id and epoch."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    producer_id: Annotated[int, int64, versions("0+"), about("The id to produce with.")] = -1
    producer_epoch: Annotated[int, int16, versions("0+"), about("The epoch to produce with.")] = 0
    ongoing_txn_producer_id: Annotated[
        int, int64, versions("6+"), about("Producer id of the transaction that was kept; -1 for none.")
    ] = -1
    ongoing_txn_producer_epoch: Annotated[
        int, int16, versions("6+"), about("Epoch of the transaction that was kept; -1 for none.")
    ] = -1
