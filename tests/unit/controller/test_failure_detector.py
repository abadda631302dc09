from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from pybroker.controller import failure_detector
from pybroker.controller.failure_detector import FailureDetector
from tests.support import processes

BROKER, EPOCH = 3, 17


class StoodDownError(Exception):
    """This node leads no more."""


class Cluster:
    """Broker 3, which a test lets live or die."""

    def __init__(self, grace_ms: int = 0) -> None:
        self.address: tuple[str, int] | None = None
        self.dead: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        self.stood_down = False
        self.requested = asyncio.Event()
        self.detector = FailureDetector(self._address_of, self._died, StoodDownError, grace_ms)

    def _address_of(self, broker_id: int, epoch: int) -> tuple[str, int] | None:
        assert (broker_id, epoch) == (BROKER, EPOCH)
        self.requested.set()
        return self.address

    async def _died(self, broker_id: int, epoch: int) -> None:
        await self.dead.put((broker_id, epoch))
        if self.stood_down:
            raise StoodDownError("another leads")

    async def looked(self) -> None:
        """Wait until nothing is looked for."""
        await asyncio.gather(*self.detector._probes.values())


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster()
    yield cluster
    await cluster.detector.stop()


@pytest.fixture
def free_port() -> int:
    return processes.free_port()


async def test_a_closed_connection_and_a_port_that_refuses_are_a_death(cluster: Cluster, free_port: int) -> None:
    cluster.address = "127.0.0.1", free_port
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    assert await cluster.dead.get() == (BROKER, EPOCH)
    assert cluster.detector.is_removed(BROKER)


async def test_every_address_of_a_name_has_to_refuse(cluster: Cluster, free_port: int) -> None:
    cluster.address = "localhost", free_port
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    assert await cluster.dead.get() == (BROKER, EPOCH)


async def test_a_host_that_cannot_be_one_says_nothing_of_its_broker(cluster: Cluster) -> None:
    cluster.address = "x" * 300, 9092
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    await cluster.looked()
    assert cluster.dead.empty()


async def test_a_broker_that_still_listens_is_left_to_its_session(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_detector, "_PROBE_TIMEOUT_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as server:
        cluster.address = server.getsockname()
        cluster.detector.note(9, BROKER, EPOCH)
        cluster.detector.connection_closed(9)
        await cluster.looked()
    assert cluster.dead.empty()
    assert cluster.detector.is_removed(BROKER), "another incarnation may take its place"


async def test_a_listener_that_closes_what_it_accepts_is_looked_at_again(cluster: Cluster) -> None:
    """A process that ends closes its listener before or after its connections."""

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.close()
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    cluster.address = server.sockets[0].getsockname()
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    assert await cluster.dead.get() == (BROKER, EPOCH)


async def test_a_connection_that_carried_no_heartbeat_is_nobodys(cluster: Cluster) -> None:
    cluster.detector.connection_closed(9)
    assert not cluster.requested.is_set()


async def test_a_broker_with_another_connection_is_alive(cluster: Cluster) -> None:
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.note(10, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    assert not cluster.detector.is_removed(BROKER)
    assert not cluster.detector._probes


async def test_an_earlier_connection_that_a_network_cut_left_open_is_no_sign_of_life(
    cluster: Cluster, free_port: int
) -> None:
    cluster.address = "127.0.0.1", free_port
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.note(10, BROKER, EPOCH)
    cluster.detector.connection_closed(10)
    assert await cluster.dead.get() == (BROKER, EPOCH)
    await cluster.looked()
    cluster.detector.connection_closed(9)
    assert not cluster.detector._probes


async def test_a_broker_that_comes_back_within_the_grace_is_not_looked_for() -> None:
    cluster = Cluster(grace_ms=20)
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    cluster.detector.note(10, BROKER, EPOCH)
    await cluster.looked()
    assert cluster.dead.empty()
    assert not cluster.detector.is_removed(BROKER)


async def test_a_broker_that_is_fenced_already_is_not_asked_for(cluster: Cluster) -> None:
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    await cluster.looked()
    assert cluster.requested.is_set()
    assert cluster.dead.empty()


async def test_no_broker_is_probed_without_a_grace(free_port: int) -> None:
    cluster = Cluster(grace_ms=-1)
    cluster.address = "127.0.0.1", free_port
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    assert not cluster.detector._probes


async def test_a_controller_that_leads_no_more_fences_nobody(
    cluster: Cluster, free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pybroker.controller")
    cluster.stood_down = True
    cluster.address = "127.0.0.1", free_port
    cluster.detector.note(9, BROKER, EPOCH)
    cluster.detector.connection_closed(9)
    await cluster.looked()
    assert "another leads" in caplog.text
