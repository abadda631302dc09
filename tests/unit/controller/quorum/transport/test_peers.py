"""Ways to the other voters: what is seen of their ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from pybroker.client.security.renewed import RenewedSecurity
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.quorum.transport.peers import PeerAddress, PeerEvents, Peers
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest, RaftMessagesResponse
from tests.support.scripted_controller import ScriptedController
from tests.support.stepped_loop import SteppedLoop

RAFT_MESSAGES = 10001
LOOPS = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


def _nothing(*_: object) -> None:
    """What the test does not look at."""


@LOOPS
def test_an_end_is_seen_before_the_loop_comes_to_it(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    connected: asyncio.Queue[int] = asyncio.Queue()
    hung_up: list[int] = []

    async def poll(server: socket.socket) -> None:
        settings = QuorumSettings(tmp_path, "cluster", 1, (1, 2), retry_backoff_ms=1)
        peers = Peers(settings, PeerEvents(connected.put_nowait, _nothing, _nothing, hung_up.append))
        peers.update({2: PeerAddress(2, "127.0.0.1", server.getsockname()[1])})
        try:
            assert await connected.get() == 2
            other, _ = server.accept()
            peers.poll()
            assert hung_up == []
            other.close()
            peers.poll()
            assert hung_up == [2], "the loop has not run since"
            assert await connected.get() == 2
            server.accept()[0].close()
        finally:
            await peers.stop()

    with socket.create_server(("127.0.0.1", 0)) as server, asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(poll(server), 60))
    assert hung_up.count(2) >= 2, "once by the question, once by the loop"


async def test_a_host_that_cannot_be_one_is_tried_again_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = QuorumSettings(tmp_path, "cluster", 1, (1, 2), retry_backoff_ms=1)
    peers = Peers(settings, PeerEvents(_nothing, _nothing, _nothing))
    tries: asyncio.Queue[int] = asyncio.Queue()
    peers.update({2: PeerAddress(2, "x" * 300, 9093)})
    peer = peers._peers[2]
    connect = peer._connect

    async def count() -> object:
        tries.put_nowait(1)
        return await connect()

    peer._connect = count  # type: ignore[method-assign, assignment]
    try:
        async with asyncio.timeout(60):
            for _ in range(3):
                await tries.get()
        assert [record.levelname for record in caplog.records if "voter 2" in record.getMessage()] == ["WARNING"]
    finally:
        await peers.stop()


class Voter:
    """A voter whose responses the test withholds, and the events that are reported of it, in their order."""

    def __init__(self) -> None:
        self.responds = asyncio.Event()
        self.events: asyncio.Queue[str] = asyncio.Queue()
        self.server = ScriptedController({RAFT_MESSAGES: self._respond})

    async def _respond(self, _: RaftMessagesRequest) -> RaftMessagesResponse:
        await self.responds.wait()
        return RaftMessagesResponse(leader_host="leader", leader_port=9093)

    def peers(self, settings: QuorumSettings) -> Peers:
        """Connections to it, as voter 2."""

        def report(event: str) -> Callable[..., None]:
            return lambda *_: self.events.put_nowait(event)

        kinds = ("connected", "lost", "refused", "hung up", "responded")
        peers = Peers(settings, PeerEvents(*map(report, kinds)))
        peers.update({2: PeerAddress(2, "127.0.0.1", self.server.endpoint.port)})
        return peers


def _outages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The level and the event of each line about connections that were open."""
    events = ("Connected to", "no response", "responds again")
    return [
        f"{record.levelname} {event}" for record in caplog.records for event in events if event in record.getMessage()
    ]


@LOOPS
@pytest.mark.parametrize("is_secured", [False, True], ids=["plain", "secured"])
def test_a_voter_that_does_not_respond_is_connected_to_anew_and_has_one_line_in_the_log(
    is_secured: bool,
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The kernel of a process that is stopped accepts its connections. It has not hung up: no election begins."""
    caplog.set_level("INFO", "pybroker.controller")
    security = RenewedSecurity("connections of a test", {"security.protocol": "PLAINTEXT"}) if is_secured else None
    settings = QuorumSettings(
        tmp_path, "cluster", 1, (1, 2), retry_backoff_ms=1, request_timeout_ms=200, security=security
    )

    async def run() -> None:
        voter = Voter()
        async with voter.server:
            peers = voter.peers(settings)
            try:
                for _ in range(3):
                    assert await voter.events.get() == "connected"
                    peers.send([(2, b"message")])
                    assert await voter.events.get() == "lost"
                assert voter.server.connections >= 3
                assert _outages(caplog) == ["INFO Connected to", "WARNING no response"]
                voter.responds.set()
                while (event := await voter.events.get()) != "responded":
                    assert event in ("connected", "lost")
                    if event == "connected":
                        peers.send([(2, b"message")])
                voter.responds.clear()
                peers.send([(2, b"message")])
                assert await voter.events.get() == "lost"
                outage = ["WARNING no response", "INFO responds again", "WARNING no response"]
                assert _outages(caplog) == ["INFO Connected to", *outage]
            finally:
                await peers.stop()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(run(), 60))


def test_a_connection_with_all_responses_stays_open(tmp_path: Path) -> None:
    """The clock advances by a millisecond at most between two polls of the sockets, so a response is never late."""
    seconds = 10

    async def run() -> int:
        loop = asyncio.get_running_loop()

        def tick() -> None:
            loop.call_later(0.001, tick)

        tick()
        voter = Voter()
        voter.responds.set()
        async with voter.server:
            peers = voter.peers(QuorumSettings(tmp_path, "cluster", 1, (1, 2)))
            try:
                assert await voter.events.get() == "connected"
                for _ in range(3):
                    peers.send([(2, b"message")])
                    assert await voter.events.get() == "responded"
                    idle = loop.create_future()
                    loop.call_later(seconds / 3, idle.set_result, None)
                    await idle
                assert voter.events.empty()
            finally:
                await peers.stop()
            return voter.server.connections

    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        assert runner.run(run()) == 1
