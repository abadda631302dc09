"""The channel between the driver and its tasks: a connection for each task, a line of JSON for each message.

Spark returns the result of a task only after its end, and nothing of a lost task. So tasks send their rows here,
where they are visible at once and survive the task. Owns sockets, framing, and mutual authentication of both ends;
`pybroker_spark.load.board` interprets the messages.

The driver generates a key for each run, which Spark passes to the tasks; it is never sent over this connection. Both
ends prove by HMACs over random numbers that they have the key, the task first. Every later message has an HMAC with
its number under a key of this connection and direction, so forged and repeated messages are rejected. Messages can
be read in transit, unless both ends use TLS (`pybroker_spark.load.channel_tls`). Unauthenticated connections are
limited in time, bytes and number.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import queue
import secrets
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from pybroker_spark.load.channel_tls import Identity, TlsConnection, trusting

Message = dict[str, Any]

_CONNECT_TIMEOUT_S = 10.0
_PROOF_TIMEOUT_S = 10.0
"""Seconds from the accept of a connection until both ends must be authenticated."""
_LONGEST_LINE = 16 * 1024 * 1024
"""Maximum bytes of a message; a connection that sends more is not read any further."""
_LONGEST_PROOF = 1024
"""The same before authentication."""
_MOST_STRANGERS = 256
"""Maximum unauthenticated connections, in addition to one for each task; a further one closes the oldest."""
_KEY_BYTES = 32
_DIGEST: Final = "sha256"
_TASK: Final = b"task"
_DRIVER: Final = b"driver"


@dataclass(frozen=True, slots=True)
class Address:
    """The driver's address, and the key by which it and its tasks authenticate."""

    host: str
    port: int
    key: bytes = field(repr=False)
    certificate: str = field(default="", repr=False)
    """The driver's TLS certificate, in PEM; without one the channel is not encrypted."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message of a task; None: its connection was closed."""

    task: int
    message: Message | None


class Listener:
    """The driver's side: `received` is a queue of the messages of all tasks, in the order of each."""

    def __init__(self, bound: str, host: str, tasks: int, identity: Identity | None = None) -> None:
        """Listen at `bound` for so many tasks, which connect to the name `host`; with an identity by TLS."""
        self._server = socket.create_server((bound, 0))
        self._tls = None if identity is None else identity.context
        certificate = "" if identity is None else identity.certificate
        self.address = Address(host, self._server.getsockname()[1], secrets.token_bytes(_KEY_BYTES), certificate)
        self.received: queue.SimpleQueue[Received] = queue.SimpleQueue()
        self._most_strangers = _MOST_STRANGERS + tasks
        self._links: dict[int, Link] = {}
        # In the order of arrival. Invariant: a connection is here, or authenticated, or closed.
        self._strangers: dict[Link, None] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="load-listener", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A thread that waits in accept() is woken by a shutdown, but not by a close.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        with self._lock:
            links = [*self._links.values(), *self._strangers]
        for link in links:
            link.close()

    def send(self, message: Message, tasks: set[int] | None = None) -> None:
        """Send a message to these tasks, or to all that are connected."""
        with self._lock:
            links = [link for task, link in self._links.items() if tasks is None or task in tasks]
        for link in links:
            link.send(message)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            link = Link(connection, _DRIVER)
            with self._lock:
                oldest = next(iter(self._strangers)) if len(self._strangers) >= self._most_strangers else None
                self._strangers[link] = None
                if oldest is not None:
                    del self._strangers[oldest]
            if oldest is not None:
                oldest.close()
            threading.Thread(target=self._serve, args=(link,), name="load-task", daemon=True).start()

    def _serve(self, link: Link) -> None:
        hello = self._meet(link)
        with self._lock:
            self._strangers.pop(link, None)
            if hello is not None:
                self._links[int(hello["task"])] = link
        if hello is None:
            link.close()
            return
        task = int(hello["task"])
        self.received.put(Received(task, hello))
        while (message := link.receive()) is not None:
            self.received.put(Received(task, message))
        self.received.put(Received(task, None))
        link.close()

    def _meet(self, link: Link) -> Message | None:
        """Return the first message of a task; None where the other end is not authenticated."""
        if self._tls is not None:
            try:
                link.begin_tls(self._tls)
            except OSError:
                return None
        return link.receive() if link.challenge(self.address.key) else None


class Link:
    """One end of a connection, which sends and receives messages once the other end is authenticated."""

    def __init__(self, connection: socket.socket, side: bytes) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection: socket.socket | TlsConnection = connection
        self._side, self._other = side, _TASK if side == _DRIVER else _DRIVER
        self._deadline: float | None = time.monotonic() + _PROOF_TIMEOUT_S
        self._buffer = bytearray()
        self._key = b""
        self._sent = self._taken = 0
        self._lock = threading.Lock()

    @classmethod
    def connect(cls, address: Address, hello: Message) -> Self:
        """Connect a task to its driver. Raises OSError with the address."""
        where = f"the driver's channel at {address.host}:{address.port}"
        try:
            connection = socket.create_connection((address.host, address.port), timeout=_CONNECT_TIMEOUT_S)
        except OSError as error:
            raise OSError(f"{where} cannot be reached from this task: {error}") from None
        link = cls(connection, _TASK)
        stranger = f"{where}: what answers there has not shown that it is this job's driver"
        if address.certificate:
            try:
                link.begin_tls(trusting(address.certificate))
            except OSError as error:
                link.close()
                raise OSError(f"{stranger}: {error}") from None
        if not link._respond(address.key):
            link.close()
            raise OSError(stranger)
        link.send(hello)
        return link

    def begin_tls(self, context: ssl.SSLContext) -> None:
        """Start TLS before any other data is sent. Raises OSError where the other end does not use TLS."""
        assert isinstance(self._connection, socket.socket)
        secured = TlsConnection(self._connection, context, is_server=self._side == _DRIVER)
        secured.shake_hands(self._deadline)
        self._connection = secured

    def challenge(self, key: bytes) -> bool:
        """Authenticate as the driver; False where the other end lacks the key."""
        own = secrets.token_hex(16)
        self._send_line(own.encode())
        other, _, proof = self._receive_line(_LONGEST_PROOF).partition(b" ")
        self._key = _mac(key, b"connection", own.encode(), other)
        if not hmac.compare_digest(proof, self._proof(self._other)):
            return False
        self._send_line(self._proof(self._side))
        self._prove()
        return True

    def _respond(self, key: bytes) -> bool:
        """Authenticate as a task."""
        other, own = self._receive_line(_LONGEST_PROOF), secrets.token_hex(16).encode()
        self._key = _mac(key, b"connection", other, own)
        self._send_line(own + b" " + self._proof(self._side))
        if not hmac.compare_digest(self._receive_line(_LONGEST_PROOF), self._proof(self._other)):
            return False
        self._prove()
        return True

    def _proof(self, side: bytes) -> bytes:
        return _mac(self._key, b"proof", side)

    def _prove(self) -> None:
        self._deadline = None
        with contextlib.suppress(OSError):
            self._connection.settimeout(None)

    def send(self, message: Message) -> None:
        """Send one message; does nothing when the connection is closed, which `receive` reports."""
        text = json.dumps(message, separators=(",", ":")).encode()
        with self._lock:
            self._send_line(_mac(self._key, self._side, b"%d" % self._sent, text) + b" " + text)
            self._sent += 1

    def receive(self) -> Message | None:
        """Wait for the next message; None when the connection is closed, or the message is not authentic."""
        code, _, text = self._receive_line(_LONGEST_LINE).partition(b" ")
        if not hmac.compare_digest(code, _mac(self._key, self._other, b"%d" % self._taken, text)):
            return None
        self._taken += 1
        message = json.loads(text)
        return message if isinstance(message, dict) else None

    def _send_line(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self._connection.sendall(line + b"\n")

    def _receive_line(self, longest: int) -> bytes:
        """Return the next line without its end; empty after a timeout, or if the line is too long or incomplete."""
        end = self._buffer.find(b"\n")
        while end < 0:
            if len(self._buffer) > longest:
                return b""
            try:
                if self._deadline is not None:
                    self._connection.settimeout(max(self._deadline - time.monotonic(), 0.001))
                more = self._connection.recv(64 * 1024)
            except OSError:
                return b""
            if not more:
                return b""
            end = more.find(b"\n")
            end = end if end < 0 else len(self._buffer) + end
            self._buffer += more
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line if len(line) <= longest else b""

    def close(self) -> None:
        """Close the connection, and wake a thread that waits in `receive`."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def _mac(key: bytes, *parts: bytes) -> bytes:
    """Return an HMAC of parts, as text. No part but the last may contain a blank or be empty."""
    return hmac.new(key, b" ".join(parts), _DIGEST).hexdigest().encode()
