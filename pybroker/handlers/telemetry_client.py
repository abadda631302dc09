"""Shared by both telemetry APIs: the client of a request, and the telemetry service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.telemetry.client import Client

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.telemetry.service import Telemetry

TELEMETRY_KEYS = frozenset({71, 72})
"""The keys of GetTelemetrySubscriptions and PushTelemetry, which a broker without receivers does not serve."""


def telemetry_of(context: BrokerContext) -> Telemetry:
    """Return the telemetry service. Only a broker with one serves the APIs."""
    telemetry = context.services.telemetry
    assert telemetry is not None
    return telemetry


def telemetry_client(instance_id: bytes, context: BrokerContext) -> Client:
    """Return the client's attributes from its request."""
    origin = context.origin
    name, version = origin.software or ("", "")
    return Client(
        instance_id,
        origin.client_id or "",
        name,
        version,
        origin.peer_host,
        origin.peer_port,
        str(context.principal),
    )
