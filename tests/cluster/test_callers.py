"""Callers that read nothing, send halves or leave: what they hold is bounded, and nobody else waits for them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from pybroker.client import Admin, NewTopic
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, header

pytestmark = pytest.mark.process

MEBIBYTE = 1 << 20
METADATA = 3


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with 500 topics, so that an answer to Metadata is some 100 KiB long."""
    overrides = {"queued.max.response.bytes": str(16 * MEBIBYTE), "queued.max.request.bytes": str(100 * MEBIBYTE)}
    with BrokerProcess(tmp_path_factory.mktemp("callers") / "data", overrides=overrides) as process:
        with Admin(process.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(f"topic-{number}", 4, 1) for number in range(500)])
        yield process


@pytest.fixture(autouse=True)
def bystander(broker: BrokerProcess) -> Iterator[Wire]:
    """A connection that was open before, and works in both planes afterwards."""
    with Wire(broker.bootstrap_servers) as wire:
        wire.call("ListGroups", 4)  # An answer says that the connection was accepted: `crowd` counts connections.
        yield wire
        assert wire.call("Metadata", 12, topics=[{"name": "topic-0"}]).topics[0].error_code == 0
        assert fetched(wire.query(fetch("topic-0"))).error_code == 0
    assert broker.is_running(), broker.log[-3000:]
    assert "Traceback" not in broker.log


def sockets_of(broker: BrokerProcess) -> int:
    count = 0
    for descriptor in Path(f"/proc/{broker.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # It was closed since it was listed.
            count += str(descriptor.readlink()).startswith("socket:")
    return count


@contextmanager
def crowd(broker: BrokerProcess, count: int) -> Iterator[list[socket.socket]]:
    """That many connections, none of which waits; at the end they close, and the broker is seen to notice."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    before = sockets_of(broker)
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(count)]
        wait_until(lambda: sockets_of(broker) >= before + count, within=60, what="the connections are not open")
        for one in sockets:
            one.setblocking(False)
        yield sockets
    wait_until(lambda: sockets_of(broker) <= before, within=60, what=lambda: f"{sockets_of(broker)} sockets")


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def test_clients_that_pipeline_and_read_nothing_take_little_memory(broker: BrokerProcess, bystander: Wire) -> None:
    before = broker.resident_bytes()
    everything = framed(header(METADATA, 1, 7) + b"\xff\xff\xff\xff")
    with crowd(broker, 300) as hoarders:
        for hoarder in hoarders:
            hoarder.send(everything * 64)
        wait_until(lambda: "queued.max.response.bytes" in broker.log, within=60, what="no word of unread answers")
        assert bystander.call("ListGroups", 4).error_code == 0
        assert broker.resident_bytes() < before + 100 * MEBIBYTE


def encoded_fetch() -> bytes:
    """A fetch that waits ten minutes for a record."""
    waiting = fetch("topic-1", min_bytes=1, max_wait_ms=600_000)
    waiting.with_header(correlation_id=1, client_id="crowd")
    encoded: bytes = waiting.encode(header=True, framed=True)
    return encoded


def test_clients_that_leave_while_their_fetches_wait_are_noticed(broker: BrokerProcess) -> None:
    waiting = encoded_fetch()
    with crowd(broker, 50) as leaving:
        for one in leaving:
            assert one.send(waiting * 70) == len(waiting) * 70


def test_half_requests_take_no_more_memory_than_they_may(broker: BrokerProcess) -> None:
    before = broker.resident_bytes()
    size = 20 * MEBIBYTE
    half = (size + 4).to_bytes(4, "big") + bytes(size // 2)
    with crowd(broker, 40) as senders:
        sent = dict.fromkeys(senders, 0)

        def all_stuck() -> bool:
            moved = False
            for sender, count in sent.items():
                with suppress(BlockingIOError):
                    sent[sender] += sender.send(half[count : count + MEBIBYTE])
                    moved |= sent[sender] > count
            return not moved and "queued.max.request.bytes" in broker.log

        wait_until(all_stuck, within=60, what="the broker reads on")
        assert broker.resident_bytes() < before + 160 * MEBIBYTE
    wait_until(
        lambda: broker.resident_bytes() < before + 60 * MEBIBYTE,
        within=60,
        what=lambda: f"{(broker.resident_bytes() - before) >> 20} MiB are kept",
    )
