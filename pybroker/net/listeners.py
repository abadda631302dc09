"""Opens the listeners at the start and while a broker runs, and returns their addresses.

Owns the binding of configured endpoints and its error messages. Must not accept or read a connection.
"""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.config.endpoint import PROTOCOLS, Endpoint
from pybroker.config.errors import ConfigError
from pybroker.net.native import unlisten
from pybroker.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.config.broker import BrokerConfig
    from pybroker.config.endpoint import Listener
    from pybroker.net.native import DataPlane
    from pybroker.net.tls import TlsListeners
    from pybroker.security.native import ServerTls

log = logging.getLogger("pybroker.net")

ANY_HOST = "0.0.0.0"  # the meaning of an empty host in `listeners`
AUTHENTICATION_TIMEOUT_MS = 30_000
"""Timeout of SASL authentication, including the TLS handshake (docs/adr/0065).

Kafka uses `connections.max.idle.ms`, which restarts with every byte of the client.
"""


class ListenError(Exception):
    """A listener cannot be opened. The text is one line with the endpoint, the cause and a remedy."""


class ListenerSettings(NamedTuple):
    """The arguments of the data plane to open a listener; see `_native.pyi`."""

    name: str
    host: str
    port: int
    backlog: int
    congestion_control: str | None
    control_only: bool
    principal: Principal | None
    unauthenticated_max_bytes: int
    authentication_timeout_ms: int
    tls: tuple[ServerTls, int] | None


class OpenListener(msgspec.Struct, frozen=True):
    """An open listener with its port. If `advertised` is None, clients receive the address to which they connected."""

    name: str
    bound: Endpoint
    advertised: Endpoint | None
    protocol: str = "PLAINTEXT"
    """The security protocol."""

    def __str__(self) -> str:
        return str(self.advertised or self.bound)

    @property
    def protocol_number(self) -> int:
        """Kafka's number of the security protocol."""
        return PROTOCOLS.index(self.protocol)

    @property
    def reachable(self) -> tuple[str, int]:
        """Host and port to register: the advertised address, else the bound address, else this host's name."""
        if self.advertised is not None:
            return self.advertised.host, self.advertised.port
        host = self.bound.host
        return (socket.gethostname() if host in (ANY_HOST, "::") else host), self.bound.port


def advertised(listeners: Iterable[OpenListener]) -> dict[str, tuple[str, int]]:
    """Return the advertised host and port by listener, without listeners that have none."""
    return {one.name: (one.advertised.host, one.advertised.port) for one in listeners if one.advertised is not None}


def open_listeners(
    data_plane: DataPlane,
    listeners: Iterable[Listener],
    *,
    backlog: int,
    unauthenticated_max_bytes: int,
    tls: TlsListeners,
) -> tuple[OpenListener, ...]:
    """Bind every listener and return them.

    `backlog` is the length of the accept queue, `unauthenticated_max_bytes` the maximum frame size of connections that
    are not authenticated.

    Raises ListenError for the first listener that cannot be bound. The others are closed with the data plane.
    """
    opened = []
    for listener in listeners:
        endpoint = listener.endpoint
        try:
            settings = ListenerSettings(
                name=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                backlog=backlog,
                congestion_control=listener.congestion_control,
                control_only=listener.is_controller,
                principal=None if listener.authenticates else ANONYMOUS,
                unauthenticated_max_bytes=unauthenticated_max_bytes,
                authentication_timeout_ms=AUTHENTICATION_TIMEOUT_MS,
                tls=tls.of(endpoint.name),
            )
            port = data_plane.listen(settings)
        except OSError as error:
            raise ListenError(f"cannot listen on {endpoint}: {_reason(error, listener)}") from None
        bound = endpoint._replace(host=endpoint.host or ANY_HOST, port=port)
        opened.append(OpenListener(endpoint.name, bound, listener.advertised, listener.protocol))
    return tuple(opened)


class BrokerListeners:
    """The listeners of a broker, which can be opened and closed while it runs. Used from the event loop."""

    def __init__(self, data_plane: DataPlane, config: BrokerConfig, tls: TlsListeners) -> None:
        """Open the listeners of the settings. Raises ListenError."""
        self._data_plane = data_plane
        self._tls = tls
        self._settings = {one.endpoint.name: one for one in config.broker_endpoints}
        self.all = self._open(config, config.broker_endpoints)

    def reconfigure(self, config: BrokerConfig) -> bool:
        """Close removed listeners and open added ones. Return whether any listener was opened or closed.

        A listener that cannot be opened is logged, and retried at the next change. A listener whose address or protocol
        has changed needs a restart, and is kept until then.
        """
        wanted = {one.endpoint.name: one for one in config.broker_endpoints}
        removed = [name for name in self._settings if name not in wanted]
        for name in removed:
            unlisten(self._data_plane, name)
            self._tls.close(name)
            del self._settings[name]
            log.info("Closed listener %s; its connections end after their last response", name)
        opened: list[OpenListener] = []
        for name, listener in wanted.items():
            if name not in self._settings:
                opened += self._open_beside(config, listener)
            elif listener != self._settings[name]:
                log.warning("The changes of listener %s need a restart", name)
        self.all = (*(one for one in self.all if one.name not in removed), *opened)
        return bool(removed or opened)

    def _open_beside(self, config: BrokerConfig, listener: Listener) -> tuple[OpenListener, ...]:
        name = listener.endpoint.name
        try:
            if listener.is_encrypted:
                self._tls.open(name, config.tls_of_listeners()[name])
            opened = self._open(config, (listener,))
        except (ConfigError, ListenError) as error:
            self._tls.close(name)
            log.error("Failed to open listener %s: %s", name, error)
            return ()
        self._settings[name] = listener
        log.info("Opened listener %s at %s", name, opened[0].bound)
        return opened

    def _open(self, config: BrokerConfig, listeners: Iterable[Listener]) -> tuple[OpenListener, ...]:
        return open_listeners(
            self._data_plane,
            listeners,
            backlog=config.socket_listen_backlog_size,
            unauthenticated_max_bytes=config.sasl_server_max_receive_size,
            tls=self._tls,
        )


def _reason(error: OSError, listener: Listener) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is in use by another process; stop that, or set listeners to another port"
    if error.errno == errno.EADDRNOTAVAIL:
        return "the address is not assigned to this machine; set listeners to one of its addresses"
    if error.errno == errno.EACCES:
        return "ports below 1024 need more rights; set listeners to a higher port"
    if error.errno in (errno.ENOENT, errno.EPERM) and listener.congestion_control is not None:
        return f"congestion.control={listener.congestion_control} is not offered by this kernel"
    return error.strerror or str(error)
