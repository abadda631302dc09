"""The thread of the admin listener: accepts connections, parses requests with h11, and writes pages in chunks.

Owns the limits: open connections, bytes of a request's head and body, time for a request and its response, and
concurrent heavy pages. It has an event loop of its own, so its clients never block the broker's loop, and a page's
generator lets other threads run between chunks (docs/adr/0074). Must not know the content of pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from typing import TYPE_CHECKING

import h11
import msgspec

from pybroker.admin_http.pages import SERVED_METHODS

if TYPE_CHECKING:
    from pybroker.admin_http.pages import Page, Pages

log = logging.getLogger("pybroker.admin")

_HEAD_BYTES = 8 * 1024
"""Maximum bytes of a request's line and headers."""
_BODY_BYTES = 8 * 1024
"""Maximum bytes read of a body, which no page uses."""
_METHOD_NOT_ALLOWED = 405
_READ_BYTES = 4096
_LINGER_BYTES = 64 * 1024
"""Maximum bytes read from a client that was rejected."""
_BACKLOG = 16
_HEAVY_PAGES = 2
"""Number of concurrent heavy pages: each keeps a row for every partition until its client has read it."""


class Limits(msgspec.Struct, frozen=True):
    """The limits of the listener."""

    connections: int
    timeout_s: float


class AdminServer:
    """One listener; `close` ends it and its thread."""

    def __init__(self, host: str, port: int, pages: Pages, limits: Limits) -> None:
        """Bind and start to serve. Raises OSError where the address is not available."""
        self._pages = pages
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._loop = asyncio.SelectorEventLoop()
        self._stopped = asyncio.Event()
        self._heavy = asyncio.Semaphore(_HEAVY_PAGES)
        self._thread = threading.Thread(target=self._run, name="admin-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End connections and the thread; responses in progress are cut off."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()
            self._socket.close()

    async def _serve(self) -> None:
        accepting = asyncio.create_task(self._accept())
        await self._stopped.wait()
        for task in (accepting, *self._tasks):
            task.cancel()
        await asyncio.gather(accepting, *self._tasks, return_exceptions=True)

    async def _accept(self) -> None:
        was_full = False
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._socket)
            except OSError as error:
                # Usually all file descriptors are in use: those of the broker have precedence.
                log.warning("The admin listener could not accept a connection: %s", error)
                await asyncio.sleep(1)
                continue
            is_full = len(self._tasks) >= self._limits.connections
            if is_full and not was_full:
                log.warning(
                    "Closing a connection to the admin listener: it has the maximum of %d connections", len(self._tasks)
                )
            was_full = is_full
            if is_full:
                connection.close()
                continue
            connection.setblocking(False)
            task = asyncio.create_task(self._converse(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _converse(self, connection: socket.socket) -> None:
        """Respond to requests until the client disconnects, times out, or violates the protocol."""
        talk = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
        with connection:
            try:
                await self._respond_all(connection, talk)
            except OSError:  # includes TimeoutError
                return
            except Exception:
                # The client detects the failure by the incomplete response.
                log.exception("The admin listener failed to respond")

    async def _respond_all(self, connection: socket.socket, talk: h11.Connection) -> None:
        while True:
            async with asyncio.timeout(self._limits.timeout_s):
                try:
                    request = await self._request(connection, talk)
                except h11.RemoteProtocolError as error:
                    await self._refuse(connection, talk, error)
                    return
            if request is None:
                return
            async with asyncio.timeout(self._limits.timeout_s):
                page = self._pages.find(
                    request.method.decode(), request.target.decode("ascii", "replace"), _accept_of(request)
                )
                async with self._heavy if page.is_heavy else contextlib.nullcontext():
                    await self._respond(connection, talk, page, has_body=request.method != b"HEAD")
            if talk.our_state is not h11.DONE or talk.their_state is not h11.DONE:
                return
            talk.start_next_cycle()

    async def _request(self, connection: socket.socket, talk: h11.Connection) -> h11.Request | None:
        """Read a request with its body, which is discarded; None after a disconnect."""
        request, body = None, 0
        while True:
            event = talk.next_event()
            if event is h11.NEED_DATA:
                talk.receive_data(await self._loop.sock_recv(connection, _READ_BYTES))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += len(event.data)
                if body > _BODY_BYTES:
                    raise h11.RemoteProtocolError(f"a body of more than {_BODY_BYTES} bytes", error_status_hint=413)
            elif isinstance(event, h11.EndOfMessage):
                return request
            else:
                return None

    async def _refuse(self, connection: socket.socket, talk: h11.Connection, error: h11.RemoteProtocolError) -> None:
        if talk.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        text = f"{error}\n".encode()
        headers = [
            ("content-type", "text/plain; charset=utf-8"),
            ("content-length", str(len(text))),
            ("connection", "close"),
        ]
        parts = [
            talk.send(h11.Response(status_code=error.error_status_hint, headers=headers)),
            talk.send(h11.Data(data=text)),
            talk.send(h11.EndOfMessage()),
        ]
        await self._loop.sock_sendall(connection, b"".join(part or b"" for part in parts))
        # Closing with unread bytes would reset the connection, and the client would not get the response.
        connection.shutdown(socket.SHUT_WR)
        left = _LINGER_BYTES
        while left > 0 and (read := await self._loop.sock_recv(connection, _READ_BYTES)):
            left -= len(read)

    async def _respond(self, connection: socket.socket, talk: h11.Connection, page: Page, *, has_body: bool) -> None:
        send = self._loop.sock_sendall
        headers = [("content-type", page.content_type)]
        if page.status == _METHOD_NOT_ALLOWED:
            headers.append(("allow", ", ".join(SERVED_METHODS)))
        await send(connection, talk.send(h11.Response(status_code=page.status, headers=headers)) or b"")
        for piece in page.pieces if has_body else ():
            await send(connection, talk.send(h11.Data(data=piece.encode())) or b"")
        await send(connection, talk.send(h11.EndOfMessage()) or b"")


def _accept_of(request: h11.Request) -> str:
    """Return the Accept header of a request; several headers form one list (RFC 9110, 5.3)."""
    return ",".join(value.decode("latin-1") for name, value in request.headers if name == b"accept")
