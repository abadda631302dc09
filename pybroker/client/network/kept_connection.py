"""A connection of this node to another node that is kept: opened when it is needed, and again after it has ended.

Owns what it is opened with, so that nodes connect to controllers and to brokers alike. Must not know what is asked, nor
whom to ask: each `open` names the server.
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
"""The longest wait for a connection: a node that is not there is not waited for while another may answer."""


def settings_of_node(client_id: str, request_timeout_ms: int) -> ConnectionSettings:
    """Return what a node's connections to other nodes are opened with; `client_id` is what it calls itself there."""
    return AdminSettings.from_properties(
        {
            "bootstrap.servers": "any:1",
            "client.id": client_id,
            "request.timeout.ms": request_timeout_ms,
            "socket.connection.setup.timeout.ms": min(request_timeout_ms, _LONGEST_SETUP_MS),
        }
    )


def server_name(host: str, port: int) -> str:
    """Return an address as `Connection.server` has it."""
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
        """`security` is what it is secured with, None for plaintext; `unacknowledged_ms` is that of `Stream.open`."""
        self._settings = settings
        self._security = security
        self._unacknowledged_ms = unacknowledged_ms
        self._opening = asyncio.Lock()
        self._closed = False
        self.connection: Connection | None = None
        """The one that was opened last; it may have ended."""
        self.under_way = 0
        """Requests that its user counts."""

    def to(self, server: str) -> Connection | None:
        """Return the connection, where it is open and goes to `server`."""
        connection = self.connection
        return connection if connection is not None and connection.usable and connection.server == server else None

    async def open(self, server: str) -> Connection:
        """Return the connection to `server`; one to another server is closed.

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
        """End the connection, and open none any more; requests that are under way fail."""
        self._closed = True
        if self.connection is not None:
            await self.connection.close()
