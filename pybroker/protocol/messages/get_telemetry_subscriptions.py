"""GetTelemetrySubscriptions (71): the metrics that a client should push."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, boolean, int8, int16, int32, string, uuid, versions


class GetTelemetrySubscriptionsRequest(Message, api_key=71, kind="request", versions="0", flexible="0+"):
    """Requests the metrics subscription of a client (KIP-714)."""

    client_instance_id: Annotated[
        bytes, uuid, versions("0+"), about("Id of the client, which the first answer gave; zero before that.")
    ] = bytes(16)


class GetTelemetrySubscriptionsResponse(Message, api_key=71, kind="response", versions="0", flexible="0+"):
    """The metrics that the client should push, and the push interval."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    client_instance_id: Annotated[
        bytes, uuid, versions("0+"), about("Id of the client: the one that it sent, or a new one for zero.")
    ] = bytes(16)
    subscription_id: Annotated[
        int, int32, versions("0+"), about("Stands for what is asked of this client; a push names it.")
    ] = 0
    accepted_compression_types: Annotated[
        list[int], int8, versions("0+"), about("Codecs that a push may be compressed with, preferred ones first.")
    ] = []
    push_interval_ms: Annotated[int, int32, versions("0+"), about("Time between two pushes, in milliseconds.")] = 0
    telemetry_max_bytes: Annotated[int, int32, versions("0+"), about("Most bytes of a push.")] = 0
    delta_temporality: Annotated[
        bool, boolean, versions("0+"), about("Whether sums are those since the push before; otherwise in all.")
    ] = False
    requested_metrics: Annotated[
        list[str], string, versions("0+"), about("Prefixes of the metrics' names; none for no metrics, `*` for all.")
    ] = []
