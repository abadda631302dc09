"""Ways to the other voters: what is seen of their ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from pybroker.controller.quorum.peers import PeerAddress, PeerEvents, Peers
from pybroker.controller.quorum.settings import QuorumSettings


def _nothing(*_: object) -> None:
    """What the test does not look at."""


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_an_end_is_seen_before_the_loop_comes_to_it(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    connected: asyncio.Queue[int] = asyncio.Queue()
    hung_up: list[int] = []

    async def look(server: socket.socket) -> None:
        settings = QuorumSettings(tmp_path, "cluster", 1, (1, 2), retry_backoff_ms=1)
        peers = Peers(settings, PeerEvents(connected.put_nowait, _nothing, _nothing, hung_up.append))
        peers.update({2: PeerAddress(2, "127.0.0.1", server.getsockname()[1])})
        try:
            assert await connected.get() == 2
            other, _ = server.accept()
            peers.look()
            assert hung_up == []
            other.close()
            peers.look()
            assert hung_up == [2], "the loop has not run since"
            assert await connected.get() == 2
            server.accept()[0].close()
        finally:
            await peers.stop()

    with socket.create_server(("127.0.0.1", 0)) as server, asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(look(server), 30))
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
        async with asyncio.timeout(30):
            for _ in range(3):
                await tries.get()
        assert [record.levelname for record in caplog.records if "voter 2" in record.getMessage()] == ["WARNING"]
    finally:
        await peers.stop()
