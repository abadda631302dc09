"""A connection to another voter through TLS, or one that says by SASL who connects: a client's connection.

Owns the order of frames, which is that in which they were written. Must not know what messages say. The plain one is
`pybroker.controller.quorum.transport.peers.Stream`, whose face this has: Raft's own frames cost no task there.
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
"""For a request: `ResponseTimer` ends the wait."""


class SecuredStream:
    """One connection: requests out in their order, answers in."""

    def __init__(
        self,
        connection: Connection,
        stream: Stream,
        timeout_ms: int,
        check_response: Callable[[RaftMessagesResponse], str | None],
    ) -> None:
        """Take an open connection over `stream`.

        Args:
            timeout_ms: the longest wait for a response, by the rule of `ResponseTimer`.
            check_response: returns the reason to close the connection, None for none.
        """
        self._connection = connection
        self._descriptor = stream.descriptor
        self._check_response = check_response
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = loop.create_future()
        """Gets the reason for its end."""
        self.is_refused = False
        """Whether the other end does not take this voter's messages."""
        self.is_silent = False
        """Whether this end has closed the connection because a response was missing."""
        # Sizes are those of the messages. Headers and TLS add a little to what is written.
        self._responses = ResponseTimer(timeout_ms, stream.descriptor, lambda: stream.unsent_bytes, self._expired)
        self.unsent = 0
        """Bytes of messages that are not answered."""
        self._waiting: deque[tuple[RaftMessagesRequest, int]] = deque()
        self._news = asyncio.Event()
        self._asking: set[asyncio.Task[None]] = set()
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
        """Connect. Raises OSError where nobody is reached, ClientError where this node is not let in."""
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
        """Whether the other end has closed the connection. The event loop may not have seen it."""
        return is_closed_by_peer(self._descriptor)

    def write(self, request: RaftMessagesRequest) -> None:
        """Send a request."""
        size = sum(map(len, request.messages))
        self.unsent += size
        self._waiting.append((request, size))
        self._news.set()

    def close(self) -> None:
        """End the connection; what is not sent yet is dropped."""
        self._end("closed")

    async def _send(self) -> None:
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                while self._waiting:
                    request, size = self._waiting.popleft()
                    # While the session is renewed nothing leaves, and the order stays.
                    await self._connection.ready()
                    self._responses.sent(size)
                    task = asyncio.ensure_future(self._ask(request, size))
                    self._asking.add(task)
                    task.add_done_callback(self._asking.discard)
        finally:
            self._connection.give_up("this node is stopping")

    async def _ask(self, request: RaftMessagesRequest, size: int) -> None:
        try:
            response = await self._connection.ask(request, RaftMessagesResponse, timeout_ms=_UNBOUNDED_MS)
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
