"""Groups of real clients over 12 partitions, their members killed and stopped: every record at least once, one owner.

`PYBROKER_GROUP_ROUNDS` sets how often something happens to a member of each group; `make soak` sets it high.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator

import pytest

from pybench.peers import java
from pybroker.client import Producer
from tests.conformance.conftest import Server, serves, serving
from tests.support import programs
from tests.support.conditions import wait_until
from tests.support.group_audit import Member, check_one_owner_at_a_time, seen, wait_for_sharing
from tests.support.member_program import CLIENTS

PARTITIONS, MOST_MEMBERS = 12, 5
ROUNDS = int(os.environ.get("PYBROKER_GROUP_ROUNDS", "2"))
PATIENCE_SECONDS = 60
CONSUMER_GROUP_HEARTBEAT = 68

pytestmark = pytest.mark.timeout(120 + 90 * ROUNDS)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that misses a member of KIP-848 as soon as members of the classic protocol ask to be missed."""
    timeouts = {"group.consumer.session.timeout.ms": "6000", "group.consumer.min.session.timeout.ms": "6000"}
    with serving(
        {**timeouts, "group.consumer.heartbeat.interval.ms": "1000", "group.consumer.min.heartbeat.interval.ms": "1000"}
    ) as server:
        yield server


@pytest.fixture
def topic(make_topic: Callable[[int], str]) -> str:
    """A topic of 12 partitions."""
    return make_topic(PARTITIONS)


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """The processes of a test, all of them ended with it."""
    started: list[Member] = []
    yield started
    for member in started:
        if member.process.poll() is None:
            member.kill()


def produce(server: Server, topic: str, count: int, after: int) -> None:
    """Put `count` records in each partition, behind those of rounds before."""
    with Producer(server.bootstrap_servers) as producer:
        for number in range(count):
            for partition in range(PARTITIONS):
                producer.send(topic, b"%d" % (after + number), partition=partition)


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_every_record_is_read_and_partitions_have_one_owner(
    server: Server, topic: str, members: list[Member], client: str
) -> None:
    if client.endswith("-consumer") and not serves(server, CONSUMER_GROUP_HEARTBEAT):
        pytest.skip("this broker does not serve the protocol of KIP-848")
    dice = random.Random(client)
    live: list[Member] = []

    def start(count: int) -> None:
        for _ in range(count):
            live.append(Member.start(client, server.bootstrap_servers, topic, f"group-{topic}"))
            members.append(live[-1])

    start(dice.randrange(2, MOST_MEMBERS + 1))
    wait_for_sharing(live, PARTITIONS)
    written = 0
    for number in range(ROUNDS):
        produce(server, topic, 20, written)
        written += 20
        victim = live.pop(dice.randrange(len(live)))
        if number % 2 == 0:
            victim.kill()
        else:
            victim.stop()
        start(dice.randrange(1, MOST_MEMBERS + 1 - len(live)) if len(live) < MOST_MEMBERS else 0)
        produce(server, topic, 20, written)
        written += 20
        wait_for_sharing(live, PARTITIONS)
        if victim.stopped:
            victim.go_on()
            live.append(victim)
            wait_for_sharing(live, PARTITIONS)
    everything = {(partition, offset) for partition in range(PARTITIONS) for offset in range(written)}
    wait_until(
        lambda: seen(members).keys() >= everything,
        within=PATIENCE_SECONDS,
        what=f"all of {len(everything)} records are read",
    )
    for member in live:
        member.end()
    check_one_owner_at_a_time(members)
    assert seen(members).keys() == everything


@pytest.mark.java
def test_kafkas_console_consumers_share_a_group(server: Server, topic: str) -> None:
    programs.kafka_tools()
    words = [*java.short_java_command("console-consumer"), "--bootstrap-server", server.bootstrap_servers]
    words += ["--topic", topic, "--group", f"group-{topic}", "--timeout-ms", "15000"]
    for option in ("print.partition=true", "print.offset=true", "print.value=false"):
        words += ["--formatter-property", option]
    words += ["--command-property", "auto.offset.reset=earliest"]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
    try:
        produce(server, topic, 50, 0)
        lines = [line for one in running for line in one.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()]
    finally:
        for one in running:
            one.kill()
            one.wait()
    read = {tuple(int(part.split(":")[1]) for part in line.split("\t")[:2]) for line in lines}
    assert read == {(partition, offset) for partition in range(PARTITIONS) for offset in range(50)}
