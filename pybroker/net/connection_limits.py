"""Connection limits of the data plane, from settings and IP quotas (KIP-612).

Owns the limits in force: they are updated when settings or quotas change, and when host names are resolved. Must not
know how limits are enforced.
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
_MOST_DELAYED = 1000  # delayed connections of throttled addresses, each for at most a second


class ConnectionLimits(msgspec.Struct, frozen=True):
    """Limits for the data plane: `pybroker._native` reads these attributes.

    Rates are connections per second, or None.
    """

    max_connections: int
    max_connections_reason: str
    creation_rate: float | None
    listeners: dict[str, tuple[int, float | None, bool]]
    """By listener: maximum connections, rate, and whether it is exempt from the broker-wide limits."""
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
    """Return the limits in force. `rates` is by name of an `ip` entity (None: the default), `addresses` by host name.

    A host name without an address has no effect.
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
    # The inter-broker listener is exempt if clients have other listeners.
    is_protected = name == config.inter_broker_listener and len(config.broker_endpoints) > 1
    return own.max_connections, _rate(own.creation_rate), is_protected


def _rate(limit: int) -> float | None:
    return None if limit == INT_MAX else float(limit)


def address_rates(quotas: ClientQuotasImage) -> dict[str | None, float]:
    """Return the maximum connections per second by `ip` entity; None is the default entity."""
    return {
        entity[0][1]: limits[CREATION_RATE]
        for entity, limits in quotas.by_entity.items()
        if entity[0][0] == IP and CREATION_RATE in limits
    }


class ConnectionQuotas:
    """Updates the data plane's connection limits after changed settings and quotas.

    A publisher, used on the loop's thread.
    """

    def __init__(self, data_plane: DataPlane, config: BrokerConfig, shares: Shares) -> None:
        self._data_plane = data_plane
        self._config = config
        self._shares = shares
        self._quotas: ClientQuotasImage | None = None
        self._rates: dict[str | None, float] = {}
        # Addresses of host names, from the last lookup.
        self._addresses: dict[str, str] = {}
        self._look_up_task: asyncio.Task[None] | None = None
        self._enforce()

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed settings."""
        self._config = config
        self._enforce()

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Apply changed IP quotas."""
        if image.quotas is self._quotas:
            return
        self._quotas = image.quotas
        rates = address_rates(image.quotas)
        if rates != self._rates:
            self._rates = rates
            self._enforce()

    def stop(self) -> None:
        """Cancel lookups of addresses."""
        if self._look_up_task is not None:
            self._look_up_task.cancel()

    def _enforce(self) -> None:
        """Apply the limits of known addresses at once, and the others after the lookup of their host names."""
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
