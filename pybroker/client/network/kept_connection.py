"""A persistent connection from this node to another node: opened on demand, and reopened after it has ended.

Owns its settings, so that nodes connect to controllers and to brokers alike. Must not know the requests, or choose
the node: each `open` names the server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybroker.client.errors import ConnectionLostError
from pybroker.client.network.connection import Connection
from pybroker.client.settings import AdminSettings

if TYPE_CHECKING:
    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.client.settings import ConnectionSettings

_LONGEST_SETUP_MS = 2_000
"""Connection setup timeout. It is short, so that an unreachable node does not delay requests to another one."""


def settings_of_node(client_id: str, request_timeout_ms: int) -> ConnectionSettings:
    """Return the settings of a node's connections to other nodes; `client_id` is its client id there."""
    return AdminSettings.from_properties(
        {
            "bootstrap.servers": "any:1",
            "client.id": client_id,
            "request.timeout.ms": request_timeout_ms,
            "socket.connection.setup.timeout.ms": min(request_timeout_ms, _LONGEST_SETUP_MS),
        }
    )


def server_name(host: str, port: int) -> str:
    """Return an address in the form of `Connection.server`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class KeptConnection:
    """One connection at a time. Used from one event loop."""

    def __init__(
        self,
        settings: ConnectionSettings,
        security: RenewedSecurity | None,
        *,
        unacknowledged_ms: int | None = None,
    ) -> None:
        """`security` has the TLS and SASL objects, None for plaintext; `unacknowledged_ms` is that of `Stream.open`."""
        self._settings = settings
        self._security = security
        self._unacknowledged_ms = unacknowledged_ms
        self._opening = asyncio.Lock()
        self._closed = False
        self.connection: Connection | None = None
        """The connection that was opened last; it may have ended."""
        self.in_progress = 0
        """A counter of requests, maintained by the user."""

    def to(self, server: str) -> Connection | None:
        """Return the connection, where it is open and connected to `server`."""
        connection = self.connection
        return connection if connection is not None and connection.usable and connection.server == server else None

    async def open(self, server: str) -> Connection:
        """Return the connection to `server`. One to another server is closed.

        Raises ConnectionLostError (also once this is closed), AuthenticationError.
        """
        async with self._opening:
            if (kept := self.to(server)) is not None:
                return kept
            before, self.connection = self.connection, None
            if before is not None:
                await before.close()
            if self._security is not None:
                self._security.secure(self._settings)
            connection = await Connection.open(server, self._settings, unacknowledged_ms=self._unacknowledged_ms)
            if self._closed:
                await connection.close()
                raise ConnectionLostError(f"{server}: this node is stopping")
            self.connection = connection
            return connection

    async def close(self) -> None:
        """Close the connection, and reject further opens. Requests in flight fail."""
        self._closed = True
        if self.connection is not None:
            await self.connection.close()
