"""Listeners as values: `listeners`, `advertised.listeners` and the security protocol map, parsed.

Owns their syntax. Must not know sockets, or the rules between roles and listeners.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.config.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FORM = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)://(?:\[(?P<six>[^\]]*)\]|(?P<host>[^:/\[\]]*)):(?P<port>[0-9]+)$")
_EXPECTED = "NAME://host:port, such as PLAINTEXT://localhost:9092"
_LAST_PORT = 65535
_PORT_DIGITS = 5
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Security protocols, by Kafka's numbers."""


class Endpoint(NamedTuple):
    """A named address. An empty host stands for every interface, port 0 for any free one."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Listener(msgspec.Struct, frozen=True):
    """One listener: its address, its advertised address (None: the address the client used), and its security."""

    endpoint: Endpoint
    advertised: Endpoint | None
    congestion_control: str | None
    is_controller: bool = False
    """Whether it is for controllers, and brokers that connect to them. Clients use the other listeners."""
    protocol: str = "PLAINTEXT"
    """The security protocol."""

    @property
    def authenticates(self) -> bool:
        """Whether its connections must authenticate by SASL."""
        return self.protocol.startswith("SASL_")

    @property
    def is_encrypted(self) -> bool:
        """Whether its connections use TLS."""
        return self.protocol.endswith("SSL")


def parse_endpoint(key: str, text: str) -> Endpoint:
    """Parse an endpoint. Raises ConfigError for `key`."""
    match = _FORM.match(text)
    if match is None:
        raise ConfigError(key, text, _EXPECTED)
    # The length is checked first: int() rejects thousands of digits with a message of its own.
    if len(match["port"]) > _PORT_DIGITS or int(match["port"]) > _LAST_PORT:
        raise ConfigError(key, text, f"{_EXPECTED}; a port is from 0 to {_LAST_PORT}")
    return Endpoint(match["name"].upper(), match["six"] or match["host"] or "", int(match["port"]))


def parse_endpoints(key: str, texts: tuple[str, ...]) -> dict[str, Endpoint]:
    """Parse endpoints, by name in the given order. Raises ConfigError for a duplicate name or address."""
    endpoints: dict[str, Endpoint] = {}
    for text in texts:
        endpoint = parse_endpoint(key, text)
        if endpoint.name in endpoints:
            raise ConfigError(key, text, f"each name once, {endpoint.name} occurs twice")
        if endpoint.port and any(endpoint[1:] == other[1:] for other in endpoints.values()):
            raise ConfigError(key, text, "each address once")
        endpoints[endpoint.name] = endpoint
    return endpoints


def parse_protocols(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse the security protocols by listener name of `listener.security.protocol.map`. Raises ConfigError."""
    key = "listener.security.protocol.map"
    protocols = {}
    for pair in pairs:
        name, _, protocol = pair.partition(":")
        if protocol.upper() not in PROTOCOLS:
            raise ConfigError(key, pair, "NAME:PROTOCOL with one of " + ", ".join(PROTOCOLS))
        protocols[name.upper()] = protocol.upper()
    return protocols


def with_controllers(
    protocols: Mapping[str, str], listeners: Iterable[str], controller_names: Iterable[str]
) -> dict[str, str]:
    """Add PLAINTEXT for controllers to the default map, unless a listener name refers to encryption (KIP-631)."""
    names = {name.upper() for name in controller_names}
    if any(protocols.get(name, "PLAINTEXT") != "PLAINTEXT" for name in (*names, *listeners)):
        return dict(protocols)
    return {**protocols, **dict.fromkeys(names, "PLAINTEXT")}


def build_listeners(
    endpoints: Mapping[str, Endpoint],
    advertised: Mapping[str, Endpoint],
    protocols: Mapping[str, str],
    controller_names: Iterable[str],
    congestion_control: Mapping[str, str | None],
) -> tuple[Listener, ...]:
    """Return the listeners of these keys. Raises ConfigError for one that cannot be served.

    Those in `controller_names` are for controllers. `congestion_control` is by listener name; the empty name applies
    to all others.
    """
    if not endpoints:
        raise ConfigError("listeners", "", _EXPECTED)
    for endpoint in advertised.values():
        _check_advertised(endpoint)
    inner = {name.upper() for name in controller_names}
    for name, endpoint in endpoints.items():
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError("listeners", endpoint, f"a protocol for {name} in listener.security.protocol.map")
    return tuple(
        Listener(
            endpoint,
            advertised.get(name),
            congestion_control.get(name, congestion_control.get("")),
            is_controller=name in inner,
            protocol=protocols[name],
        )
        for name, endpoint in endpoints.items()
    )


def _check_advertised(endpoint: Endpoint) -> None:
    key = "advertised.listeners"
    if endpoint.host == "0.0.0.0":
        sentence = f"{key} cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
        raise RefusedError(key, endpoint, sentence)
    if endpoint.host in ("", "::"):
        raise ConfigError(key, endpoint, "a host that clients can connect to")
    if not endpoint.port:
        raise ConfigError(key, endpoint, "a port that clients can connect to")
