"""The way between the driver and its tasks while a job runs: a line of JSON a message, over one connection a task.

Spark gives a driver what a task returns when the task has ended, and nothing of a task that is lost. So that rows are
seen as they arise and outlive their task, each task sends them here. Owns sockets, framing, and the proof of both ends
that they are of the same job; what messages mean is `pybroker_spark.load.board`'s matter.

The driver makes a key for each run, which Spark carries to the tasks; it never goes over this connection. Both ends
show by HMACs over a random number of each that they have it, the task first. Every message then has an HMAC under a key
of this connection and direction, with its number: nobody else's message is taken, and none twice. What messages say can
be read on the way, unless both ends begin with TLS (`pybroker_spark.load.channel_tls`). Strangers are bounded: how long
they take, what they send, and how many there are.
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
"""From a connection's beginning until both ends have proved themselves."""
_LONGEST_LINE = 16 * 1024 * 1024
"""More than any message has; nothing further is read from a connection that sends more."""
_LONGEST_PROOF = 1024
"""The same until the other end has proved itself."""
_MOST_STRANGERS = 256
"""Connections that have proved nothing yet, beside one for each task; a further one ends the oldest."""
_KEY_BYTES = 32
_DIGEST: Final = "sha256"
_TASK: Final = b"task"
_DRIVER: Final = b"driver"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the driver listens, and the key by which it and its tasks know each other."""

    host: str
    port: int
    key: bytes = field(repr=False)
    certificate: str = field(default="", repr=False)
    """What the driver shows in TLS, in PEM; without one the channel is not encrypted."""


@dataclass(frozen=True, slots=True)
class Received:
    """What came from a task; None: its connection has closed."""

    task: int
    message: Message | None


class Listener:
    """The driver's side: `received` holds what comes from all tasks, in the order of each."""

    def __init__(self, bound: str, host: str, tasks: int, identity: Identity | None = None) -> None:
        """Listens at `bound`, which so many tasks reach by the name `host`; with an identity by TLS."""
        self._server = socket.create_server((bound, 0))
        self._tls = None if identity is None else identity.context
        certificate = "" if identity is None else identity.certificate
        self.address = Address(host, self._server.getsockname()[1], secrets.token_bytes(_KEY_BYTES), certificate)
        self.received: queue.SimpleQueue[Received] = queue.SimpleQueue()
        self._most_strangers = _MOST_STRANGERS + tasks
        self._links: dict[int, Link] = {}
        # In the order of their coming. Invariant: a connection is here or its end has proved itself, or it is closed.
        self._strangers: dict[Link, None] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="load-listener", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A thread that waits in accept() is woken by a shutdown, not by a close.
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
        """The first message of a task; None where the other end is not of this job."""
        if self._tls is not None:
            try:
                link.begin_tls(self._tls)
            except OSError:
                return None
        return link.receive() if link.challenge(self.address.key) else None


class Link:
    """One connection's end, which sends and takes messages once the other end has proved itself."""

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
        """A task's way to its driver. Raises OSError, naming the address."""
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
        if not link._answer(address.key):
            link.close()
            raise OSError(stranger)
        link.send(hello)
        return link

    def begin_tls(self, context: ssl.SSLContext) -> None:
        """Encrypt all that follows, before anything else is said. Raises OSError where the other end does not do so."""
        assert isinstance(self._connection, socket.socket)
        secured = TlsConnection(self._connection, context, is_server=self._side == _DRIVER)
        secured.shake_hands(self._deadline)
        self._connection = secured

    def challenge(self, key: bytes) -> bool:
        """The driver's part of the proof; False where the other end is not of this job."""
        own = secrets.token_hex(16)
        self._send_line(own.encode())
        other, _, proof = self._receive_line(_LONGEST_PROOF).partition(b" ")
        self._key = _mac(key, b"connection", own.encode(), other)
        if not hmac.compare_digest(proof, self._proof(self._other)):
            return False
        self._send_line(self._proof(self._side))
        self._prove()
        return True

    def _answer(self, key: bytes) -> bool:
        """The task's part of the proof."""
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
        """Send one message; nothing when the other end has gone, which `receive` reports."""
        text = json.dumps(message, separators=(",", ":")).encode()
        with self._lock:
            self._send_line(_mac(self._key, self._side, b"%d" % self._sent, text) + b" " + text)
            self._sent += 1

    def receive(self) -> Message | None:
        """Wait for the next message; None when the other end has gone, or what came is not from it."""
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
        """The next line without its end; nothing where none comes in time, or it is longer, or cut off."""
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
        """End; a thread that waits in `receive` is woken."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def _mac(key: bytes, *parts: bytes) -> bytes:
    """An HMAC of parts, as text; none of them but the last has a blank or is empty."""
    return hmac.new(key, b" ".join(parts), _DIGEST).hexdigest().encode()
