"""GetTelemetrySubscriptions: returns the metrics that a client shall push, and the push interval (KIP-714).

Key
    71

Versions
    0-0

Behaviour
    - A client without an id gets a new one. Its subscription combines the matching client-metrics resources: all their
      metrics, and the shortest interval. Without a match, it has no metrics.
    - The subscription id changes with the subscription, and is the same on every broker.
    - THROTTLING_QUOTA_EXCEEDED for another request within the push interval, unless the subscriptions have changed, or
      the last push was rejected for an outdated subscription or its codec.
    - Codecs in order of preference: zstd, lz4, gzip, snappy. Sums have delta temporality.
    - The broker caches the latest 16384 clients, each until its connection is closed or it sends nothing for three
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
    """Return the client's subscription."""
    telemetry = telemetry_of(context)
    try:
        given = telemetry.query(telemetry_client(request.client_instance_id, context), context.origin.connection)
    except RefusedError as refusal:
        raise ApiError(refusal.code, str(refusal)) from refusal
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=given.instance_id,
        subscription_id=given.requested.subscription_id,
        accepted_compression_types=list(ACCEPTED_CODECS),
        push_interval_ms=given.requested.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(given.requested.metrics),
    )
