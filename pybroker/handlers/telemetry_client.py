"""What the two APIs of telemetry share: the client behind a request, and the service that is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.telemetry.client import Client

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.telemetry.service import Telemetry

TELEMETRY_KEYS = frozenset({71, 72})
"""GetTelemetrySubscriptions and PushTelemetry, which a broker without receivers does not serve."""


def telemetry_of(context: BrokerContext) -> Telemetry:
    """Return the service; only a broker that has it serves the APIs."""
    telemetry = context.services.telemetry
    assert telemetry is not None
    return telemetry


def telemetry_client(instance_id: bytes, context: BrokerContext) -> Client:
    """Return the client as its request shows it."""
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
