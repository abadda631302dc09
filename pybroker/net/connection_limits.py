"""Limits of connections: from settings and from quotas of addresses (KIP-612) to the data plane's table.

Owns which limits hold when: with every change of the settings and of the quotas, and once names have addresses. Must
not know how connections are counted, nor what is done to those beyond a limit.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from pybroker.config.connections import ListenerConnections, parse_overrides
from pybroker.config.key import INT_MAX
from pybroker.metadata.quotas import IP
from pybroker.net.descriptors import connections_allowed
from pybroker.security.host_names import addresses_of, written_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.broker import BrokerConfig
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.quotas import ClientQuotasImage
    from pybroker.net.descriptors import Shares
    from pybroker.net.native import DataPlane

log = logging.getLogger("pybroker.net")

CREATION_RATE = "connection_creation_rate"
_MOST_DELAYED = 1000  # sockets of addresses that are too fast, each for a second at most


class ConnectionLimits(msgspec.Struct, frozen=True):
    """What the data plane gets: `pybroker._native` reads these attributes. Rates are connections a second, or None."""

    max_connections: int
    max_connections_reason: str
    creation_rate: float | None
    listeners: dict[str, tuple[int, float | None, bool]]
    """Connections, rate, and whether the limits of the whole broker do not hold, by listener."""
    max_per_address: int
    max_of_address: dict[str, int]
    address_rate: float | None
    rate_of_address: dict[str, float]
    window_ms: int
    windows: int
    most_delayed: int


def build_connection_limits(
    config: BrokerConfig, shares: Shares, rates: Mapping[str | None, float], addresses: Mapping[str, str]
) -> ConnectionLimits:
    """Return the limits in force. `rates` are by name of an `ip` entity, None the default; `addresses` by name.

    A name without an address limits nobody.
    """
    max_connections, reason = connections_allowed(shares, config.max_connections)
    listeners = config.connections_of_listeners()
    overrides = parse_overrides(config.max_connections_per_ip_overrides)
    return ConnectionLimits(
        max_connections=max_connections,
        max_connections_reason=reason,
        creation_rate=_rate(config.max_connection_creation_rate),
        listeners={name: _of_listener(config, name, own) for name, own in listeners.items()},
        max_per_address=config.max_connections_per_ip,
        max_of_address={addresses[name]: most for name, most in overrides.items() if name in addresses},
        address_rate=rates.get(None),
        rate_of_address={
            addresses[name]: rate for name, rate in rates.items() if name is not None and name in addresses
        },
        window_ms=config.quota_window_size_seconds * 1000,
        windows=config.quota_window_num,
        most_delayed=_MOST_DELAYED,
    )


def _of_listener(config: BrokerConfig, name: str, own: ListenerConnections) -> tuple[int, float | None, bool]:
    # Brokers reach each other whatever clients do, as long as clients have a listener of their own.
    is_protected = name == config.inter_broker_listener and len(config.broker_endpoints) > 1
    return own.max_connections, _rate(own.creation_rate), is_protected


def _rate(limit: int) -> float | None:
    return None if limit == INT_MAX else float(limit)


def address_rates(quotas: ClientQuotasImage) -> dict[str | None, float]:
    """Return the connections a second of each `ip` entity that has a limit, None being the default."""
    return {
        entity[0][1]: limits[CREATION_RATE]
        for entity, limits in quotas.by_entity.items()
        if entity[0][0] == IP and CREATION_RATE in limits
    }


class ConnectionQuotas:
    """Follows settings and metadata with the data plane's limits of connections. A publisher; on the loop's thread."""

    def __init__(self, data_plane: DataPlane, config: BrokerConfig, shares: Shares) -> None:
        self._data_plane = data_plane
        self._config = config
        self._shares = shares
        self._quotas: ClientQuotasImage | None = None
        self._rates: dict[str | None, float] = {}
        # Of names, as the resolver gave them when they were last asked for.
        self._addresses: dict[str, str] = {}
        self._look_up_task: asyncio.Task[None] | None = None
        self._enforce()

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take the broker's changed settings."""
        self._config = config
        self._enforce()

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Take changed quotas of addresses."""
        if image.quotas is self._quotas:
            return
        self._quotas = image.quotas
        rates = address_rates(image.quotas)
        if rates != self._rates:
            self._rates = rates
            self._enforce()

    def stop(self) -> None:
        """Look for no addresses any more."""
        if self._look_up_task is not None:
            self._look_up_task.cancel()

    def _enforce(self) -> None:
        """Put in force what is known, and the rest when the names in it have addresses."""
        names = {*parse_overrides(self._config.max_connections_per_ip_overrides), *filter(None, self._rates)}
        addresses = {name: written_address(name) for name in names}
        found = {name: one for name, one in addresses.items() if one is not None}
        self._apply({**self._addresses, **found})
        self.stop()
        if unknown := names - found.keys():
            self._look_up_task = asyncio.get_running_loop().create_task(self._look_up(unknown, found))

    async def _look_up(self, names: set[str], found: Mapping[str, str]) -> None:
        self._addresses = await addresses_of(names)
        for name in sorted(names - self._addresses.keys()):
            log.warning("The host name %s has no address: its connection limit has no effect", name)
        self._apply({**self._addresses, **found})

    def _apply(self, addresses: Mapping[str, str]) -> None:
        limits = build_connection_limits(self._config, self._shares, self._rates, addresses)
        self._data_plane.set_connection_limits(limits)
