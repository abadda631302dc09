"""GetTelemetrySubscriptions: which metrics a client is to push, and how often (KIP-714).

Key
    71

Versions
    0-0

Behaviour
    - A client without an id gets a new one. What it is asked for is the sum of the client-metrics resources that match
      it: their metrics, at the shortest interval. No metrics are asked for where none matches.
    - The id of the subscription is another one when anything of it changes; it is the same on every broker.
    - A client that asks again before its interval is over is THROTTLING_QUOTA_EXCEEDED, unless the subscriptions have
      changed, or its last push was refused for an outdated one or for its codec.
    - Codecs, preferred ones first: zstd, lz4, gzip, snappy. Sums are asked for as growth since the push before.
    - The broker remembers the latest 16384 clients, each until its connection closes or it has been silent for three
      intervals.
    - Without `telemetry.receivers` the API is neither advertised nor served.

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
from pybroker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from pybroker.security.requirements import NothingRequired
from pybroker.telemetry.service import ACCEPTED_CODECS, RefusedError

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError


def _failed(
    _request: GetTelemetrySubscriptionsRequest, _version: int, error: WireError
) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(error_code=error.code)


@handles(
    GetTelemetrySubscriptionsRequest,
    requires=NothingRequired("Kafka asks for no right: who may connect may be asked for its metrics."),
    failed=_failed,
)
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: BrokerContext
) -> GetTelemetrySubscriptionsResponse:
    """Say what the client is to push."""
    telemetry = telemetry_of(context)
    try:
        given = telemetry.ask(telemetry_client(request.client_instance_id, context), context.origin.connection)
    except RefusedError as refusal:
        raise ApiError(refusal.code, str(refusal)) from refusal
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=given.instance_id,
        subscription_id=given.asked.subscription_id,
        accepted_compression_types=list(ACCEPTED_CODECS),
        push_interval_ms=given.asked.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(given.asked.metrics),
    )
