"""PushTelemetry: receives a client's metrics (KIP-714).

Key
    72

Versions
    0-0

Behaviour
    - The metrics are passed to every receiver of `telemetry.receivers`, outside the loop, and the response waits for
      them. A payload may be compressed with any of Kafka's codecs.
    - Errors, in this order: INVALID_REQUEST for a reserved id (0 or 1), and for a push after the terminating one;
      THROTTLING_QUOTA_EXCEEDED for a push within the interval, except for the first after GetTelemetrySubscriptions and
      a terminating one; UNKNOWN_SUBSCRIPTION_ID for another subscription than the client's;
      UNSUPPORTED_COMPRESSION_TYPE for an unknown codec; TELEMETRY_TOO_LARGE for more than `telemetry.max.bytes`,
      compressed or decompressed; INVALID_RECORD if decompression fails or a receiver rejects the metrics, after which
      clients stop pushing.
    - Subscriptions are matched against the attributes of the client's first request to this broker.

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
    """Pass the metrics to the receivers, and respond when they have processed them."""
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
