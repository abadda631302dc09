"""Keys of client telemetry: the maximum size of a push, and the receivers.

Without a receiver no client is requested to push metrics. Must not know subscriptions: those are resources of the
cluster (`pybroker.config.client_metrics`).
"""

from __future__ import annotations

from pybroker.config.key import integer, listing
from pybroker.config.settings import Settings

LAST_VALUES = "last-values"
"""The built-in receiver."""


class TelemetryKeys(Settings):
    """The processing of metrics that clients push (KIP-714)."""

    telemetry_max_bytes = integer(
        1024**2, "Maximum size in bytes of a push of a client's metrics, compressed and decompressed.", at_least=1
    )
    telemetry_receivers = listing(
        (),
        f"Receivers of the metrics that clients push: {LAST_VALUES} keeps the last value of each metric, "
        "module:Class is a custom Python class (docs/guides/client-metrics.md). GetTelemetrySubscriptions and "
        "PushTelemetry are served only with at least one receiver, as in Kafka with a ClientTelemetry plugin.",
        ours="set it to collect the metrics that clients push (KIP-714)",
    )
