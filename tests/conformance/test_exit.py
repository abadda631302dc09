"""Programs that end with an open producer: their records are in the log, or one line has the count."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import pytest

from pybroker.client import LATEST, Admin, TopicPartition
from pybroker.testing import Broker
from tests.support import repository

COUNT = 1_000


def run(program: str, broker: Broker) -> subprocess.CompletedProcess[str]:
    text = "import asyncio, os, sys, threading\nfrom pybroker.client import *\nservers = sys.argv[1]\n"
    return subprocess.run(
        [sys.executable, "-c", text + textwrap.dedent(program), broker.bootstrap_servers],
        env={**os.environ, "PYTHONPATH": str(repository.ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def written(broker: Broker) -> int:
    with Admin(broker.bootstrap_servers) as admin:
        return admin.list_offsets({TopicPartition("t", 0): LATEST})[TopicPartition("t", 0)].offset


SENDING = f"""
settings = {{"linger.ms": 60_000, "batch.size": 1_000_000}}

def send_all(producer, **named):
    for number in range({COUNT}):
        producer.send("t", b"%d" % number, **named)
"""

PROGRAMS = {
    "a producer of a module": "producer = Producer(servers, settings)\nsend_all(producer)",
    "callbacks": """
called = []
producer = Producer(servers, settings)
send_all(producer, on_delivery=lambda *it: called.append(it))
""",
    "a daemon thread": """
sent = threading.Event()

def work():
    producer = Producer(servers, settings)
    send_all(producer)
    sent.set()
    threading.Event().wait()

threading.Thread(target=work, daemon=True).start()
sent.wait()
""",
    "a loop that has ended": f"""
async def main():
    producer = AsyncProducer(servers, settings)
    for number in range({COUNT}):
        await producer.send("t", b"%d" % number)

asyncio.run(main())
""",
    "a loop that has ended, and a producer of the module": f"""
async def main():
    global producer
    producer = AsyncProducer(servers, settings)
    for number in range({COUNT}):
        await producer.send("t", b"%d" % number)

asyncio.run(main())
""",
    "sys.exit": "producer = Producer(servers, settings)\nsend_all(producer)\nsys.exit(0)",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_records_of_an_open_producer_are_written_when_the_process_ends(program: str) -> None:
    with Broker() as broker:
        ran = run(SENDING + program, broker)
        assert (ran.stderr, ran.returncode) == ("", 0)
        assert written(broker) == COUNT


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_one_line_has_the_count_of_records_that_are_lost(program: str) -> None:
    with Broker() as broker:
        broker.hold("Produce")
        ran = run(f'{SENDING}settings["exit.flush.timeout.ms"] = 200\n{program}', broker)
        assert ran.returncode == 0
        line = rf"A (Async)?Producer was not closed: {COUNT} of its records were not delivered: 1 batches still .*\n"
        assert re.fullmatch(line, ran.stderr), ran.stderr


def test_a_freed_producer_logs_the_count() -> None:
    with Broker() as broker:
        held = broker.hold("Produce")
        ran = run(f"{SENDING}send_all(Producer(servers, settings))", broker)
        assert held.fired in (0, 1), "the producer may be freed before it has sent anything"
        line = rf"A Producer was not closed: {COUNT} of its records were not delivered: 1 batches still .*\n"
        assert re.fullmatch(line, ran.stderr), ran.stderr


def test_an_exit_waits_for_callbacks_and_closes_what_sends_on() -> None:
    with Broker() as broker:
        ran = run(
            f"""
{SENDING}
called = []
producer = Producer(servers, settings)

def show():
    try:
        producer.send("t", b"late")
    except ClientError as error:
        print(len(called), type(error).__name__)

send_all(producer, on_delivery=lambda error, _: called.append(error))
import atexit, pybroker.client.producing.exiting as exiting
atexit.unregister(exiting._end_all)
atexit.register(show)
atexit.register(exiting._end_all)
""",
            broker,
        )
        assert (ran.stdout, ran.stderr, ran.returncode) == (f"{COUNT} ClosedError\n", "", 0)
