"""What a metric is: its name, its kind and its labels, and the values of its series.

Must not know any metric (`pybroker.metrics.registry`).
"""

from __future__ import annotations

from enum import Enum

import msgspec


class Kind(Enum):
    """What a value does, in OpenMetrics' words."""

    COUNTER = "counter"
    """It grows from 0 at the start of the node."""
    GAUGE = "gauge"
    """It is what it is now."""
    HISTOGRAM = "histogram"
    """How many observations were below each bound, and their sum; those of several brokers can be added."""


class Metric(msgspec.Struct, frozen=True):
    """One metric; its series differ in the values of its labels."""

    name: str
    """Without the `_total` that OpenMetrics puts behind a counter's."""
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    """Ends the name where there is one: `seconds` or `bytes`."""
    kafka: str = ""
    """Kafka's MBean; empty where Kafka has none."""

    @property
    def exposed(self) -> tuple[str, ...]:
        """The names of its series as they are read."""
        if self.kind is Kind.COUNTER:
            return (f"{self.name}_total",)
        if self.kind is Kind.HISTOGRAM:
            return (f"{self.name}_bucket", f"{self.name}_count", f"{self.name}_sum")
        return (self.name,)


class Histogram(msgspec.Struct, frozen=True):
    """The value of a histogram."""

    bounds: tuple[float, ...]
    """Upper bounds, rising; that of all observations is left out."""
    cumulative: tuple[int, ...]
    """Observations below each bound, and at the end all."""
    total: float
    """The sum of all observations."""


class Sample(msgspec.Struct, frozen=True):
    """A value of one series."""

    value: float | Histogram
    labels: tuple[str, ...] = ()
    """Values of the metric's labels, in their order."""
