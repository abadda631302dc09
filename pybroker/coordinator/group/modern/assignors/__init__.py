"""The server-side assignors of KIP-848: the partitions of each member.

Owns the built-in assignors by name: `uniform`, and `range`, with the results of Kafka's. Each is a function of values:
the members, their subscriptions and their current targets. Must not know epochs, records or time; `modern.target` uses
the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.modern.assignors.range import assign_range
from pybroker.coordinator.group.modern.assignors.uniform import assign_uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.coordinator.group.modern.assignors.spec import Assigned, GroupSpec

__all__ = ["ASSIGNORS"]

ASSIGNORS: Mapping[str, Callable[[GroupSpec], dict[str, Assigned]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}
"""By Kafka's names, in Kafka's order: the first is the default."""
