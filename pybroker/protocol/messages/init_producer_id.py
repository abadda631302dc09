"""The messages of InitProducerId."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, boolean, ignorable, int16, int32, int64, nullable, string, versions


class InitProducerIdRequest(Message, api_key=22, kind="request", versions="0-6", flexible="2+"):
    """InitProducerIdRequest."""

    transactional_id: Annotated[str | None, string, versions("0+"), nullable("0+")] = ""
    transaction_timeout_ms: Annotated[int, int32, versions("0+")] = 0
    producer_id: Annotated[int, int64, versions("3+")] = -1
    producer_epoch: Annotated[int, int16, versions("3+")] = -1
    enable2_pc: Annotated[bool, boolean, versions("6+")] = False
    keep_prepared_txn: Annotated[bool, boolean, versions("6+")] = False


class InitProducerIdResponse(Message, api_key=22, kind="response", versions="0-6", flexible="2+"):
    """InitProducerIdResponse."""

    throttle_time_ms: Annotated[int, int32, versions("0+"), ignorable] = 0
    error_code: Annotated[int, int16, versions("0+")] = 0
    producer_id: Annotated[int, int64, versions("0+")] = -1
    producer_epoch: Annotated[int, int16, versions("0+")] = 0
    ongoing_txn_producer_id: Annotated[int, int64, versions("6+")] = -1
    ongoing_txn_producer_epoch: Annotated[int, int16, versions("6+")] = -1
