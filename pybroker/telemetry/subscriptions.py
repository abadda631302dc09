"""What clients are asked for: subscriptions as values, and the sum of those that match a client.

Owns the sum and its id. Must not know requests.
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
    """By attribute of a client; all have to match."""

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Subscription:
        """Return what the configurations of a resource ask for; raises ValueError for what this version cannot read."""
        config = ClientMetricsConfig(texts)
        return cls(config.metrics, config.interval_ms, config.patterns)

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """Whether a client with these attributes is asked."""
        return all(name in attributes and matches(attributes[name]) for name, matches in self.patterns.items())


class Asked(NamedTuple):
    """What one client is asked for."""

    subscription_id: int
    """A signed number of 32 bits."""
    metrics: tuple[str, ...]
    interval_ms: int


def build_asked(client: Client, subscriptions: Iterable[Subscription]) -> Asked:
    """Return the sum of the subscriptions that match: all of their metrics, at the shortest of their intervals."""
    attributes = client.attributes
    matching = [one for one in subscriptions if one.matches(attributes)]
    metrics = {name for one in matching for name in one.metrics}
    if ALL_METRICS in metrics:
        metrics = {ALL_METRICS}
    # As Kafka's: where nobody asks, and where all intervals are longer, the default holds.
    interval_ms = min([DEFAULT_INTERVAL_MS, *(one.interval_ms for one in matching)])
    names = tuple(sorted(metrics))
    return Asked(_subscription_id(client.instance_id, names, interval_ms), names, interval_ms)


def _subscription_id(instance_id: bytes, metrics: tuple[str, ...], interval_ms: int) -> int:
    """Return a CRC32C of what is asked, and the hash of Java's UUID: another one when anything of it is another.

    Every broker of a cluster finds the same, so that a client may push to another broker than it has asked.
    """
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    high, low = (int.from_bytes(half, "big") for half in (instance_id[:8], instance_id[8:]))
    mixed = high ^ low
    unsigned = (checksum ^ (mixed >> 32) ^ mixed) & 0xFFFFFFFF
    return unsigned - 2**32 if unsigned >= 2**31 else unsigned
