"""The way between the driver and its tasks while a job runs: a line of JSON a message, over one connection a task.

Spark gives a driver what a task returns when the task has ended, and nothing of a task that is lost. So that rows are
seen as they arise and outlive their task, each task sends them here. Owns sockets and framing; what messages mean is
`pybroker_spark.load.board`'s matter.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import queue
import secrets
import socket
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

Message = dict[str, Any]

_CONNECT_TIMEOUT_S = 10.0
_LONGEST_LINE = 16 * 1024 * 1024
"""More than any message has; nothing further is read from a connection that sends more."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the driver listens, and the word by which it knows its tasks."""

    host: str
    port: int
    token: str


@dataclass(frozen=True, slots=True)
class Received:
    """What came from a task; None: its connection has closed."""

    task: int
    message: Message | None


class Listener:
    """The driver's side: `received` holds what comes from all tasks, in the order of each."""

    def __init__(self, bound: str, host: str) -> None:
        """Listens at `bound`, which tasks reach by the name `host`."""
        self._server = socket.create_server((bound, 0))
        self.address = Address(host, self._server.getsockname()[1], secrets.token_hex(16))
        self.received: queue.SimpleQueue[Received] = queue.SimpleQueue()
        self._links: dict[int, Link] = {}
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
            links = list(self._links.values())
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
            threading.Thread(target=self._serve, args=(connection,), name="load-task", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        link = Link(connection)
        hello = link.receive()
        if hello is None or not hmac.compare_digest(str(hello.get("token")), self.address.token):
            link.close()
            return
        task = int(hello["task"])
        with self._lock:
            self._links[task] = link
        self.received.put(Received(task, {key: value for key, value in hello.items() if key != "token"}))
        while (message := link.receive()) is not None:
            self.received.put(Received(task, message))
        self.received.put(Received(task, None))
        link.close()


class Link:
    """One connection's end."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._lock = threading.Lock()

    @classmethod
    def connect(cls, address: Address, hello: Message) -> Self:
        """A task's way to its driver. Raises OSError, naming the address."""
        try:
            connection = socket.create_connection((address.host, address.port), timeout=_CONNECT_TIMEOUT_S)
        except OSError as error:
            text = f"the driver's channel at {address.host}:{address.port} cannot be reached from this task: {error}"
            raise OSError(text) from None
        connection.settimeout(None)
        link = cls(connection)
        link.send({**hello, "token": address.token})
        return link

    def send(self, message: Message) -> None:
        """Send one message; nothing when the other end has gone, which `receive` reports."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(line)

    def receive(self) -> Message | None:
        """Wait for the next message; None when the other end has gone, or what it says is none."""
        with contextlib.suppress(OSError, ValueError):
            line = self._lines.readline(_LONGEST_LINE)
            # A line that was cut off is of an end that has gone.
            if line.endswith(b"\n") and isinstance(message := json.loads(line), dict):
                return message
        return None

    def close(self) -> None:
        """End; a thread that waits in `receive` is woken."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
