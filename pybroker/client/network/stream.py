"""The bytes of one connection over asyncio, in plaintext or through TLS.

Owns the socket's streams, and the native TLS session. Must not know frames.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Self

from pybroker.client import native
from pybroker.client.errors import AuthenticationError

_PIECE = 65_536
_KEEPALIVE_S = 1
"""The time without bytes before TCP probes the peer, and the time between probes.

`PROBE_EVERY` of `native/net/src/follower/connection.rs` is the same for replica fetchers, so all connections between
nodes detect a network partition equally fast (docs/adr/0099). A second is the minimum of TCP keepalive, and well
below the path timeout of 2 s.
"""
_KEEPALIVE_PROBES = 2


class UnheardTlsError(ConnectionResetError):
    """The peer closed the connection before it sent a byte of the TLS handshake: it may not use TLS."""


class Stream:
    """A connected socket; with a TLS session its bytes are encrypted."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: native.TlsSession | None
    ) -> None:
        self._reader, self._writer = reader, writer
        self._session = session
        self._plaintext = bytearray()

    @classmethod
    async def open(
        cls, host: str, port: int, tls: native.ClientTls | None, *, unacknowledged_ms: int | None = None
    ) -> Self:
        """Connect, and complete the TLS handshake.

        Args:
            unacknowledged_ms: end the connection when the peer's TCP has acknowledged no byte and no keepalive probe
                for so long (TCP_USER_TIMEOUT, RFC 5482). None keeps the kernel's timeout, which is some 15 minutes.

        Raises:
            OSError: UnheardTlsError where the peer closed the connection instead of a handshake.
            AuthenticationError: TLS has failed.
        """
        reader, writer = await asyncio.open_connection(host, port)
        try:
            if unacknowledged_ms is not None:
                _bound_silence(writer.get_extra_info("socket"), unacknowledged_ms)
            stream = cls(reader, writer, None if tls is None else tls.session(host))
            await stream._shake_hands()
        except BaseException:
            writer.close()
            raise
        return stream

    async def _shake_hands(self) -> None:
        session = self._session
        closed: type[ConnectionResetError] = UnheardTlsError
        while session is not None and session.is_handshaking:
            self._writer.write(session.take())
            try:
                ciphertext = await self._reader.read(_PIECE)
            except ConnectionError as error:
                raise closed(str(error)) from None
            if not ciphertext:
                raise closed(
                    "the broker closed the connection in the middle of the TLS handshake: its listener may speak no TLS"
                )
            closed = ConnectionResetError
            self._take(session, ciphertext)
        if session is not None:
            self._writer.write(session.take())

    def _take(self, session: native.TlsSession, ciphertext: bytes) -> None:
        try:
            self._plaintext += session.receive(ciphertext)
        except AuthenticationError:
            self._writer.write(session.take())
            raise

    def write(self, frame: bytes) -> None:
        """Send bytes, in the order of the calls."""
        if self._session is None:
            self._writer.write(frame)
            return
        at = 0
        while at < len(frame):
            at += self._session.send(frame[at:])
            self._writer.write(self._session.take())

    @property
    def unsent_bytes(self) -> int:
        """Return the number of bytes that were written but not passed to the system."""
        return self._writer.transport.get_write_buffer_size()

    @property
    def descriptor(self) -> int:
        """Return the file descriptor of the socket."""
        descriptor: int = self._writer.get_extra_info("socket").fileno()
        return descriptor

    async def drain(self) -> None:
        """Wait until the system accepts bytes again. Raises OSError for a connection that has ended."""
        await self._writer.drain()

    async def readexactly(self, size: int) -> bytes:
        """Read exactly so many bytes. Raises IncompleteReadError at the end, OSError, AuthenticationError."""
        if self._session is None:
            return await self._reader.readexactly(size)
        while len(self._plaintext) < size:
            ciphertext = await self._reader.read(_PIECE)
            if not ciphertext:
                raise asyncio.IncompleteReadError(bytes(self._plaintext), size)
            self._take(self._session, ciphertext)
            self._writer.write(self._session.take())
        taken = bytes(self._plaintext[:size])
        del self._plaintext[:size]
        return taken

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None and not self._writer.is_closing():
            self._session.end()
            self._writer.write(self._session.take())
        self._writer.close()

    async def wait_closed(self) -> None:
        """Wait until the connection has ended. Raises OSError where it did not end cleanly."""
        await self._writer.wait_closed()


def _bound_silence(connected: socket.socket, unacknowledged_ms: int) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unacknowledged_ms)
