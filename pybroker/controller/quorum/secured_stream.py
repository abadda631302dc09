"""A connection to another voter through TLS, or one that says by SASL who connects: a client's connection.

Owns the order of frames, which is that in which they were written. Must not know what messages say. The plain one is
`pybroker.controller.quorum.peers.Stream`, whose face this has: Raft's own frames cost no task there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Self

from pybroker.client.connection import Connection
from pybroker.client.errors import ClientError
from pybroker.client.settings import ConnectionSettings
from pybroker.client.stream import Stream
from pybroker.controller.quorum.hang_up import HangUp
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest, RaftMessagesResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.client.security.renewed import RenewedSecurity

_ANSWER_MS = 30_000
"""A voter that has not answered for so long is connected to anew; whether one is alive, elections find out before."""


class SecuredStream:
    """One connection: requests out in their order, answers in."""

    def __init__(
        self, connection: Connection, hang_up: HangUp, look_at: Callable[[RaftMessagesResponse], str | None]
    ) -> None:
        """Take a connection that is open; `look_at` returns why an answer ends it, None where it does not."""
        self._connection = connection
        self._hang_up = hang_up
        self._look_at = look_at
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = loop.create_future()
        """Gets the reason for its end."""
        self.is_refused = False
        """Whether the other end does not take this voter's messages."""
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
        look_at: Callable[[RaftMessagesResponse], str | None],
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
        return cls(await Connection.over(server, settings, stream), HangUp(stream.descriptor), look_at)

    @property
    def is_hung_up(self) -> bool:
        """Whether the other end has closed the connection, though the loop may not have seen it."""
        return self._hang_up.is_seen

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
                    task = asyncio.ensure_future(self._ask(request, size))
                    self._asking.add(task)
                    task.add_done_callback(self._asking.discard)
        finally:
            self._connection.give_up("this node is stopping")

    async def _ask(self, request: RaftMessagesRequest, size: int) -> None:
        try:
            answer = await self._connection.ask(request, RaftMessagesResponse, timeout_ms=_ANSWER_MS)
        except ClientError as error:
            self._end(str(error))
            return
        finally:
            self.unsent -= size
        reason = self._look_at(answer)
        if reason is not None:
            self.is_refused = True
            self._end(reason)

    def _end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)
        self._sender.cancel()
