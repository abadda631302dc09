"""Assignors of streams groups, by their names in Kafka.

Owns the mapping. An assignor is a function of its input only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.streams.assignors import sticky

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.coordinator.group.streams.assignors.spec import StreamsGroupSpec
    from pybroker.coordinator.group.streams.tasks import Tasks

ASSIGNORS: Mapping[str, Callable[[StreamsGroupSpec], dict[str, Tasks]]] = {"sticky": sticky.assign}
