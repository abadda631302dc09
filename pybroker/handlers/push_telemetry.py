"""PushTelemetry: a client's metrics (KIP-714).

Key
    72

Versions
    0-0

Behaviour
    - What is pushed goes to every receiver of `telemetry.receivers`, off the loop; the answer waits for them. A payload
      may be compressed with any codec of Kafka's.
    - Refused, in this order: an id of zeros or of 1, and what comes after a last push, INVALID_REQUEST; a push before
      the interval is over THROTTLING_QUOTA_EXCEEDED, but the first after GetTelemetrySubscriptions and a last one come
      when they like; another subscription than the client's UNKNOWN_SUBSCRIPTION_ID; an unknown codec
      UNSUPPORTED_COMPRESSION_TYPE; more than `telemetry.max.bytes`, as it travels or decompressed, TELEMETRY_TOO_LARGE;
      what does not decompress, or what a receiver refuses, INVALID_RECORD, upon which clients push no more.
    - What subscriptions match is what the client's first request to this broker showed.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.handlers.telemetry_client import telemetry_client, telemetry_of
from pybroker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from pybroker.security.requirements import NothingRequired
from pybroker.telemetry.service import RefusedError

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError


def _failed(_request: PushTelemetryRequest, _version: int, error: WireError) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error.code)


@handles(
    PushTelemetryRequest,
    requires=NothingRequired("Kafka asks for no right: who may connect may push what it was asked for."),
    failed=_failed,
)
async def push_telemetry(request: PushTelemetryRequest, context: BrokerContext) -> PushTelemetryResponse:
    """Take the metrics, and answer when the receivers have them."""
    try:
        await telemetry_of(context).push(
            telemetry_client(request.client_instance_id, context),
            context.origin.connection,
            request.subscription_id,
            bytes(request.metrics),
            request.compression_type,
            is_last=request.terminating,
        )
    except RefusedError as refusal:
        raise ApiError(refusal.code, str(refusal)) from refusal
    return PushTelemetryResponse()
