"""Connection limits and connection rates of listeners: each listener's own values override those of the broker.

Owns which values apply to a listener (`listener.name.NAME.max.connections`) and the syntax of
max.connections.per.ip.overrides. Must not resolve names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pybroker.config.errors import ConfigError
from pybroker.config.key import INT_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX, RATE = "max.connections", "max.connection.creation.rate"
_PER_IP, _OVERRIDES = "max.connections.per.ip", "max.connections.per.ip.overrides"
# Kafka's `Utils.validHostPattern`.
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")


class ListenerConnections(msgspec.Struct, frozen=True):
    """The limits of one listener."""

    max_connections: int
    creation_rate: int
    """Connections accepted per second; INT_MAX without a limit."""


def build_connections(
    listeners: Iterable[str], texts: Mapping[str, str], of_all: ListenerConnections
) -> dict[str, ListenerConnections]:
    """Return the limits of each of these listeners from texts by full name. Raises ConfigError.

    As in Kafka, the broker's limits apply separately to each listener without limits of its own.
    """
    own = {name.lower(): (name, text) for name, text in texts.items() if name.lower().startswith("listener.name.")}

    def limit(listener: str, key: str, default: int) -> int:
        name, text = own.get(f"listener.name.{listener.lower()}.{key}", (key, ""))
        return default if not text.strip() else listener_limit(name, text)

    return {
        name: ListenerConnections(limit(name, MAX, of_all.max_connections), limit(name, RATE, of_all.creation_rate))
        for name in listeners
    }


def listener_limit(name: str, text: str) -> int:
    """Parse the value of a listener's own limit. Raises ConfigError."""
    if not re.fullmatch(r"\s*[0-9]+\s*", text) or not 0 < int(text) <= INT_MAX:
        raise ConfigError(name, text, f"a whole number from 1 to {INT_MAX}")
    return int(text)


def parse_overrides(text: str) -> dict[str, int]:
    """Parse connection limits by host from `host:number,...`. Raises ConfigError."""
    limits = {}
    for item in filter(None, (one.strip() for one in text.split(","))):
        host, colon, number = item.rpartition(":")
        host, number = host.strip().removeprefix("[").removesuffix("]"), number.strip()
        if not colon or not host or _HOST.fullmatch(host) is None or not re.fullmatch(r"[0-9]{1,10}", number):
            raise ConfigError(_OVERRIDES, text, f"host:number pairs separated by commas; {item} is not such a pair")
        limits[host] = min(int(number), INT_MAX)
    return limits


def check_per_ip(max_per_ip: int, overrides: str) -> None:
    """Reject limits that would allow no connection. Raises ConfigError."""
    if not parse_overrides(overrides) and max_per_ip == 0:
        raise ConfigError(_PER_IP, "0", f"a number above 0: it can be zero only if {_OVERRIDES} is set")
