"""Keys of clients' telemetry: how much a push may hold, and who gets it.

Owns that without a receiver no client is asked for metrics. Must not know subscriptions: those are resources of the
cluster (`pybroker.config.client_metrics`).
"""

from __future__ import annotations

from pybroker.config.key import integer, listing
from pybroker.config.settings import Settings

LAST_VALUES = "last-values"
"""The receiver that is built in."""


class TelemetryKeys(Settings):
    """What becomes of the metrics that clients push (KIP-714)."""

    telemetry_max_bytes = integer(
        1024**2, "Most bytes of a push of a client's metrics, as it travels and decompressed.", at_least=1
    )
    telemetry_receivers = listing(
        (LAST_VALUES,),
        f"What gets the metrics that clients push: {LAST_VALUES} keeps the last value of each, "
        "module:Class is a class of the user's (docs/guides/client-metrics.md). Where there is none, "
        "GetTelemetrySubscriptions and PushTelemetry are not served, as by Kafka without a ClientTelemetry plugin.",
        ours=True,
    )
