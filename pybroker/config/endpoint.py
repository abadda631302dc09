"""Listeners as values: the parsed forms of `listeners`, `advertised.listeners` and the security protocol map.

Owns their syntax and what must agree between the three keys. Must not know sockets.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pybroker.config.errors import ConfigError

_FORM = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)://(?:\[(?P<six>[^\]]*)\]|(?P<host>[^:/\[\]]*)):(?P<port>\d+)$")
_EXPECTED = "NAME://host:port, such as PLAINTEXT://localhost:9092"
_LAST_PORT = 65535
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Endpoint(NamedTuple):
    """A named address. An empty host stands for every interface; port 0 for any free one."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Listener(NamedTuple):
    """Where to listen, what to advertise to clients (None: what they dialled), and how the connections are treated."""

    endpoint: Endpoint
    advertised: Endpoint | None
    congestion_control: str | None
    is_controller: bool = False
    """Whether it is for controllers, and brokers that ask them: clients are served on the others."""


def parse_endpoint(key: str, text: str) -> Endpoint:
    """Return the endpoint in `text`; raises ConfigError naming `key`."""
    match = _FORM.match(text)
    if match is None:
        raise ConfigError(key, text, _EXPECTED)
    if int(match["port"]) > _LAST_PORT:
        raise ConfigError(key, text, f"{_EXPECTED}; a port is from 0 to {_LAST_PORT}")
    return Endpoint(match["name"].upper(), match["six"] or match["host"] or "", int(match["port"]))


def build_listeners(
    listeners: tuple[str, ...],
    advertised_listeners: tuple[str, ...],
    protocol_map: tuple[str, ...],
    controller_names: tuple[str, ...],
    congestion_control: dict[str, str | None],
) -> tuple[Listener, ...]:
    """Return the listeners for clients that the keys describe; raises ConfigError where they contradict each other.

    Those in `controller_names` are for controllers among themselves; with one controller nobody would dial them, so
    they are checked and left out. `congestion_control` is by listener name, the empty name standing for all others.
    """
    protocols = _protocols(protocol_map)
    endpoints = _endpoints("listeners", listeners)
    if not endpoints:
        raise ConfigError("listeners", "", _EXPECTED)
    advertised = _endpoints("advertised.listeners", advertised_listeners)
    for endpoint in advertised.values():
        if endpoint.name not in endpoints:
            raise ConfigError(
                "advertised.listeners", endpoint, "only names that listeners has: " + ", ".join(endpoints)
            )
        if endpoint.host in ("", "0.0.0.0", "::"):
            raise ConfigError("advertised.listeners", endpoint, "a host that clients can dial")
        if not endpoint.port:
            raise ConfigError("advertised.listeners", endpoint, "a port that clients can dial")
    for name, endpoint in endpoints.items():
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError("listeners", endpoint, f"a protocol for {name} in listener.security.protocol.map")
        if protocol != "PLAINTEXT":
            raise ConfigError("listeners", endpoint, f"a PLAINTEXT listener, as {protocol} is not served yet")
    inner = {name.upper() for name in controller_names}
    served = tuple(
        Listener(endpoint, advertised.get(name), congestion_control.get(name, congestion_control.get("")))
        for name, endpoint in endpoints.items()
        if name not in inner
    )
    if not served:
        raise ConfigError("listeners", ",".join(listeners), "one that is not in controller.listener.names")
    return served


def _protocols(protocol_map: tuple[str, ...]) -> dict[str, str]:
    key = "listener.security.protocol.map"
    protocols = {}
    for pair in protocol_map:
        name, _, protocol = pair.partition(":")
        if protocol.upper() not in _PROTOCOLS:
            raise ConfigError(key, pair, "NAME:PROTOCOL with one of " + ", ".join(_PROTOCOLS))
        protocols[name.upper()] = protocol.upper()
    return protocols


def _endpoints(key: str, texts: tuple[str, ...]) -> dict[str, Endpoint]:
    endpoints: dict[str, Endpoint] = {}
    for text in texts:
        endpoint = parse_endpoint(key, text)
        if endpoint.name in endpoints:
            raise ConfigError(key, text, f"each name once, {endpoint.name} is there twice")
        if endpoint.port and any(endpoint[1:] == other[1:] for other in endpoints.values()):
            raise ConfigError(key, text, "each address once")
        endpoints[endpoint.name] = endpoint
    return endpoints
