"""The time that another voter has for a response, by a clock that the test moves."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator

import pytest

from pybroker.controller.quorum.transport.response_timer import ResponseTimer
from tests.support.conditions import wait_until
from tests.support.stepped_loop import run_stepped

TIMEOUT_MS = 2000
REASON = "no response within controller.quorum.request.timeout.ms=2000"


class Connection:
    """A connection whose other end reads nothing; the test sets what is not in the kernel's send queue yet."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.far = far
        self.unsent = 0
        self.expired: list[tuple[float, str]] = []
        self._loop = asyncio.get_running_loop()
        self.responses = ResponseTimer(TIMEOUT_MS, near.fileno(), lambda: self.unsent, self._expire)

    def _expire(self, reason: str) -> None:
        self.expired.append((round(self._loop.time(), 2), reason))

    async def until(self, seconds: float) -> None:
        """Let the time be that of the loop's clock."""
        reached = self._loop.create_future()
        self._loop.call_at(seconds, reached.set_result, None)
        await reached


def unacknowledged(sender: socket.socket) -> int:
    """Bytes in the kernel's send queue."""
    return int.from_bytes(fcntl.ioctl(sender, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as near,
        server.accept()[0] as far,
    ):
        yield near, far


def expired(ends: Ends, scenario: Callable[[Connection], Awaitable[None]]) -> list[tuple[float, str]]:
    """When the timer has expired in a scenario, which gets a connection, and for what reason."""

    async def run() -> list[tuple[float, str]]:
        connection = Connection(*ends)
        await scenario(connection)
        connection.responses.stop()
        return connection.expired

    return run_stepped(run())


def test_a_request_without_a_response_expires_once_after_the_timeout(ends: Ends) -> None:
    async def scenario(connection: Connection) -> None:
        await connection.until(1)
        connection.responses.sent(100)
        await connection.until(60)

    assert expired(ends, scenario) == [(3.0, REASON)]


def test_requests_with_responses_do_not_expire(ends: Ends) -> None:
    async def scenario(connection: Connection) -> None:
        for second in range(1, 10):
            connection.responses.sent(100)
            await connection.until(second)
            connection.responses.received()
        await connection.until(60)

    assert expired(ends, scenario) == []


def test_each_response_starts_the_timeout_of_the_next_request(ends: Ends) -> None:
    async def scenario(connection: Connection) -> None:
        for _ in range(3):
            connection.responses.sent(100)
        for second in (1.5, 3):
            await connection.until(second)
            connection.responses.received()
        await connection.until(60)

    assert expired(ends, scenario) == [(5.0, REASON)]


def test_a_request_does_not_expire_while_the_peer_acknowledges_its_bytes(ends: Ends) -> None:
    async def scenario(connection: Connection) -> None:
        connection.responses.sent(1 << 20)
        connection.unsent = 1 << 20
        for second in range(20):
            await connection.until(second + 0.5)
            connection.unsent -= 1
        await connection.until(60)

    assert expired(ends, scenario) == [(22.0, REASON)]


def test_bytes_in_the_kernels_send_queue_have_no_acknowledgement(ends: Ends) -> None:
    near, far = ends

    async def scenario(connection: Connection) -> None:
        near.setblocking(False)
        size = near.send(bytes(1 << 26))
        connection.responses.sent(size)
        queued = unacknowledged(near)
        assert 0 < queued < size
        await connection.until(2.5)
        assert connection.expired == [], "the receive buffer of the other end has a part"
        far.recv(size)
        wait_until(lambda: unacknowledged(near) < queued, within=60, what="a part is acknowledged")
        await connection.until(60)

    ((when, reason),) = expired(ends, scenario)
    assert when >= 6.0, "a timeout for each part"
    assert reason == REASON


def test_acknowledgements_of_later_requests_do_not_start_the_timeout(ends: Ends) -> None:
    """The kernel of a process that is stopped acknowledges what arrives."""

    async def scenario(connection: Connection) -> None:
        connection.responses.sent(100)
        for second in (0.5, 1, 1.5):
            await connection.until(second)
            connection.responses.sent(100)
            connection.unsent = 50
        await connection.until(60)

    assert expired(ends, scenario) == [(2.0, REASON)]


def test_later_requests_that_wait_behind_the_oldest_are_no_progress(ends: Ends) -> None:
    async def scenario(connection: Connection) -> None:
        connection.responses.sent(100)
        connection.unsent = 100
        await connection.until(1)
        connection.responses.sent(300)
        connection.unsent += 300
        await connection.until(60)

    assert expired(ends, scenario) == [(2.0, REASON)]


def test_a_response_that_the_loop_has_not_read_starts_the_timeout(ends: Ends) -> None:
    async def scenario(connection: Connection) -> None:
        connection.responses.sent(100)
        connection.far.send(b"response")
        await connection.until(3)
        connection.responses.received()
        await connection.until(60)

    assert expired(ends, scenario) == []


def test_a_stopped_timer_does_not_expire(ends: Ends) -> None:
    async def scenario(connection: Connection) -> None:
        connection.responses.sent(100)
        connection.responses.stop()
        connection.responses.sent(100)
        await connection.until(60)

    assert expired(ends, scenario) == []
