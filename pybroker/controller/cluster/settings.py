"""What the cluster machine is configured with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class ClusterSettings(NamedTuple):
    """Complete; the defaults are in `pybroker.config`."""

    num_partitions: int
    """What -1 partitions of a new topic means."""
    replication_factor: int
    """What a replication factor of -1 means."""
    validate_topic_configs: Callable[[Mapping[str, str]], str | None]
    """What is wrong with a topic's own configurations, None when nothing is; depends on nothing but its argument."""
    session_timeout_ms: int
    """A broker that is silent for longer is fenced."""
