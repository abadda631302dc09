"""UnregisterBroker (64): removes the registration of a broker."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    about,
    int16,
    int32,
    nullable,
    string,
    versions,
)


class UnregisterBrokerRequest(Message, api_key=64, kind="request", versions="0", flexible="0+"):
    """Requests the controller to unregister a broker that is permanently removed (KIP-631)."""

    broker_id: Annotated[int, int32, versions("0+"), about("The broker's id.")] = 0


class UnregisterBrokerResponse(Message, api_key=64, kind="response", versions="0", flexible="0+"):
    """Whether the broker was unregistered."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
