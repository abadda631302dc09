"""The type of a metric: its name, kind and labels, and the values of its series.

Must not know particular metrics (`pybroker.metrics.registry`).
"""

from __future__ import annotations

from enum import Enum

import msgspec


class Kind(Enum):
    """The kind of a value, in OpenMetrics' terms."""

    COUNTER = "counter"
    """Increases from 0 at the start of the node."""
    GAUGE = "gauge"
    """A current value."""
    HISTOGRAM = "histogram"
    """The number of observations below each bound, and their sum. Histograms of several brokers can be added."""


class Metric(msgspec.Struct, frozen=True):
    """One metric; its series differ in the values of its labels."""

    name: str
    """Without the suffix `_total` of OpenMetrics' counters."""
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    """Suffix of the name, where it has a unit: `seconds` or `bytes`."""
    kafka: str = ""
    """Kafka's MBean; empty where Kafka has none."""

    @property
    def exposed(self) -> tuple[str, ...]:
        """Return the exported names of its series."""
        if self.kind is Kind.COUNTER:
            return (f"{self.name}_total",)
        if self.kind is Kind.HISTOGRAM:
            return (f"{self.name}_bucket", f"{self.name}_count", f"{self.name}_sum")
        return (self.name,)


class Histogram(msgspec.Struct, frozen=True):
    """The value of a histogram."""

    bounds: tuple[float, ...]
    """Upper bounds, ascending, without the infinite one."""
    cumulative: tuple[int, ...]
    """Observations below each bound, and finally all."""
    total: float
    """The sum of all observations."""


class Sample(msgspec.Struct, frozen=True):
    """A value of one series."""

    value: float | Histogram
    labels: tuple[str, ...] = ()
    """Values of the metric's labels, in their order."""
