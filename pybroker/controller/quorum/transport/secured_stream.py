"""A connection to another voter through TLS or with SASL authentication, based on a client connection.

Owns the order of frames, which is the order of writes. Must not know messages. The plaintext connection is
`pybroker.controller.quorum.transport.peers.Stream`, which has the same interface, and needs no task per frame.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Self

from pybroker.client.errors import ClientError
from pybroker.client.network.connection import Connection
from pybroker.client.network.stream import Stream
from pybroker.client.settings import ConnectionSettings
from pybroker.controller.quorum.transport.closed_by_peer import is_closed_by_peer
from pybroker.controller.quorum.transport.response_timer import ResponseTimer
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest, RaftMessagesResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.client.security.renewed import RenewedSecurity

_UNBOUNDED_MS = (1 << 31) - 1
"""Timeout of a request: `ResponseTimer` ends the wait."""


class SecuredStream:
    """One connection: sends requests in order, receives responses."""

    def __init__(
        self,
        connection: Connection,
        stream: Stream,
        timeout_ms: int,
        check_response: Callable[[RaftMessagesResponse], str | None],
    ) -> None:
        """Use an open connection over `stream`.

        Args:
            timeout_ms: the longest wait for a response, by the rule of `ResponseTimer`.
            check_response: returns the reason to close the connection, None for none.
        """
        self._connection = connection
        self._descriptor = stream.descriptor
        self._check_response = check_response
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = loop.create_future()
        """Completes with the reason for the end."""
        self.is_refused = False
        """Whether the peer rejects this voter's messages."""
        self.is_silent = False
        """Whether this end has closed the connection because a response was missing."""
        # Sizes are those of the messages. Headers and TLS add a little to what is written.
        self._responses = ResponseTimer(timeout_ms, stream.descriptor, lambda: stream.unsent_bytes, self._expired)
        self.unsent = 0
        """Bytes of messages without a response."""
        self._waiting: deque[tuple[RaftMessagesRequest, int]] = deque()
        self._news = asyncio.Event()
        self._querying: set[asyncio.Task[None]] = set()
        self._sender = loop.create_task(self._send())

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        client_id: str,
        timeout_ms: int,
        security: RenewedSecurity,
        check_response: Callable[[RaftMessagesResponse], str | None],
    ) -> Self:
        """Connect. Raises OSError if the connection fails, ClientError if authentication or TLS fails."""
        timeout = str(timeout_ms)
        settings = ConnectionSettings(
            {
                "client.id": client_id,
                "request.timeout.ms": timeout,
                "socket.connection.setup.timeout.ms": timeout,
            }
        )
        security.secure(settings)
        server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        stream = await Stream.open(host, port, settings.tls)
        return cls(await Connection.over(server, settings, stream), stream, timeout_ms, check_response)

    @property
    def is_closed_by_peer(self) -> bool:
        """Whether the peer has closed the connection. The event loop may not have processed it."""
        return is_closed_by_peer(self._descriptor)

    def write(self, request: RaftMessagesRequest) -> None:
        """Send a request."""
        size = sum(map(len, request.messages))
        self.unsent += size
        self._waiting.append((request, size))
        self._news.set()

    def close(self) -> None:
        """Close the connection; unsent requests are dropped."""
        self._end("closed")

    async def _send(self) -> None:
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                while self._waiting:
                    request, size = self._waiting.popleft()
                    # During a reauthentication nothing is sent, and the order is kept.
                    await self._connection.ready()
                    self._responses.sent(size)
                    task = asyncio.ensure_future(self._query(request, size))
                    self._querying.add(task)
                    task.add_done_callback(self._querying.discard)
        finally:
            self._connection.give_up("this node is stopping")

    async def _query(self, request: RaftMessagesRequest, size: int) -> None:
        try:
            response = await self._connection.query(request, RaftMessagesResponse, timeout_ms=_UNBOUNDED_MS)
        except ClientError as error:
            self._end(str(error))
            return
        finally:
            self.unsent -= size
        self._responses.received()
        reason = self._check_response(response)
        if reason is not None:
            self.is_refused = True
            self._end(reason)

    def _expired(self, reason: str) -> None:
        self.is_silent = True
        self._end(reason)

    def _end(self, reason: str) -> None:
        self._responses.stop()
        if not self.ended.done():
            self.ended.set_result(reason)
        self._sender.cancel()
