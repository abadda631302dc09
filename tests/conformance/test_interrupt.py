"""Ctrl-C ends every wait of the native clients at once: each in a process of its own, which is sent SIGINT."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.conditions import wait_until
from tests.support.scripted_broker import ScriptedBroker

NOT_LEADER = 6
PROLOGUE = """
import sys, threading
from pybroker.client import ColumnFetcher, Fetcher, Producer, TopicPartition, EARLIEST
server = sys.argv[1]
DEAD = "127.0.0.1:1"
at_exit = {"exit.flush.timeout.ms": 100}
held = {"retry.backoff.ms": 60_000, "retry.backoff.max.ms": 60_000, "linger.ms": 0, **at_exit}
"""
WAITS = {
    "Fetcher.poll": (
        "fetcher = Fetcher(DEAD); fetcher.assign([TopicPartition('t', 0)])\nwait = lambda: fetcher.poll(600)"
    ),
    "ColumnFetcher.take": (
        "fetcher = ColumnFetcher(DEAD); fetcher.assign([TopicPartition('t', 0)])\nwait = lambda: fetcher.take(600)"
    ),
    "send to a dead broker": (
        "producer = Producer(DEAD, {'max.block.ms': 600_000})\nwait = lambda: producer.send('t', b'')"
    ),
    "send with full memory": (
        "producer = Producer(server, {**held, 'buffer.memory': 1000, 'batch.size': 1000, 'max.block.ms': 600_000})\n"
        "producer.send('t', b'x' * 600)\nwait = lambda: producer.send('t', b'x' * 600)"
    ),
    "Delivery.result": "delivery = Producer(server, held).send('t', b'x')\nwait = delivery.result",
    "flush": "producer = Producer(server, held); producer.send('t', b'x')\nwait = lambda: producer.flush(600)",
    "close": "producer = Producer(server, held); producer.send('t', b'x')\nwait = lambda: producer.close(600)",
    "producer_id": "producer = Producer(DEAD, {'max.block.ms': 600_000})\nwait = producer.producer_id",
    "flush of callbacks": (
        "brief = {'delivery.timeout.ms': 100, 'request.timeout.ms': 50, 'linger.ms': 0, **at_exit}\n"
        "producer = Producer(server, brief)\n"
        "def hang(*_):\n  threading.Event().wait(600)\n"
        "producer.send('t', b'x', on_delivery=hang)\nwait = lambda: producer.flush(600)"
    ),
}
EPILOGUE = """
try:
    print("waiting", flush=True)
    wait()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def sleeps(pid: int) -> bool:
    """Whether a process's main thread sleeps."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("S")


@pytest.fixture
def server() -> Iterator[str]:
    """A broker that refuses the first batches it is sent, or is not asked."""
    with ScriptedBroker([NOT_LEADER] * 1000) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_the_wait(server: str, wait: str) -> None:
    program = PROLOGUE + WAITS[wait] + EPILOGUE
    with subprocess.Popen(
        [sys.executable, "-c", program, server], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            # The wait is one of ten minutes: what ends it within a test's time limit is the signal.
            wait_until(lambda: sleeps(process.pid), within=60, what="the program to wait")
            process.send_signal(signal.SIGINT)
            reported, complaint = process.communicate(timeout=60)
        finally:
            process.kill()
        assert reported == "interrupted\n", complaint
        assert process.returncode == 0, complaint
