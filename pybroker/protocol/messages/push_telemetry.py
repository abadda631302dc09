"""PushTelemetry (72): a client pushes its metrics."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, boolean, int8, int16, int32, octets, uuid, versions


class PushTelemetryRequest(Message, api_key=72, kind="request", versions="0", flexible="0+"):
    """The metrics of a client (KIP-714)."""

    client_instance_id: Annotated[bytes, uuid, versions("0+"), about("Id of the client.")] = bytes(16)
    subscription_id: Annotated[
        int, int32, versions("0+"), about("What was asked of the client, as its last answer named it.")
    ] = 0
    terminating: Annotated[bool, boolean, versions("0+"), about("Whether the client ends: nothing more comes.")] = False
    compression_type: Annotated[
        int, int8, versions("0+"), about("Codec of the metrics: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.")
    ] = 0
    metrics: Annotated[
        bytes, octets, versions("0+"), about("Metrics as OpenTelemetry's MetricsData v1, in Protobuf.")
    ] = b""


class PushTelemetryResponse(Message, api_key=72, kind="response", versions="0", flexible="0+"):
    """Whether the broker accepted the metrics."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
