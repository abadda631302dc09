"""Subscriptions as values, and the combined subscription of a client.

Owns the combination and its id. Must not know requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.config.client_metrics import ALL_METRICS, DEFAULT_INTERVAL_MS, ClientMetricsConfig
from pybroker.telemetry.native import crc32c

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pybroker.telemetry.client import Client


class Subscription(msgspec.Struct, frozen=True):
    """One resource of type client-metrics."""

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, Callable[[str], object]]
    """Patterns by client attribute; all must match."""

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Subscription:
        """Parse the configs of a resource. Raises ValueError for values that this version does not support."""
        config = ClientMetricsConfig(texts)
        return cls(config.metrics, config.interval_ms, config.patterns)

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """Whether the subscription applies to a client with these attributes."""
        return all(name in attributes and matches(attributes[name]) for name, matches in self.patterns.items())


class Requested(NamedTuple):
    """The combined subscription of one client."""

    subscription_id: int
    """A signed number of 32 bits."""
    metrics: tuple[str, ...]
    interval_ms: int


def build_requested(client: Client, subscriptions: Iterable[Subscription]) -> Requested:
    """Combine the matching subscriptions: all of their metrics, at the shortest of their intervals."""
    attributes = client.attributes
    matching = [one for one in subscriptions if one.matches(attributes)]
    metrics = {name for one in matching for name in one.metrics}
    if ALL_METRICS in metrics:
        metrics = {ALL_METRICS}
    # As Kafka: the default applies where no subscription matches, or all intervals are longer.
    interval_ms = min([DEFAULT_INTERVAL_MS, *(one.interval_ms for one in matching)])
    names = tuple(sorted(metrics))
    return Requested(_subscription_id(client.instance_id, names, interval_ms), names, interval_ms)


def _subscription_id(instance_id: bytes, metrics: tuple[str, ...], interval_ms: int) -> int:
    """Return the id of a subscription, from a CRC32C and the hash of Java's UUID; it changes with any part.

    Every broker of a cluster computes the same id, so a client may push to another broker than the one it queried.
    """
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    high, low = (int.from_bytes(half, "big") for half in (instance_id[:8], instance_id[8:]))
    mixed = high ^ low
    unsigned = (checksum ^ (mixed >> 32) ^ mixed) & 0xFFFFFFFF
    return unsigned - 2**32 if unsigned >= 2**31 else unsigned
