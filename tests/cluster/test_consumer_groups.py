"""Members of a group of KIP-848 in processes of their own: killed, paused, added, and the broker restarted under them.

Every record is read at least once, no partition has two members, and each living member ends with a share.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess

ROUNDS = int(os.environ.get("PYBROKER_GROUP_ROUNDS", "6"))
PARTITIONS, RECORDS_PER_ROUND = 12, 600
GROUP, TOPIC = "g", "t"
PROGRAM = Path(__file__).parents[1] / "support" / "group_member.py"

pytestmark = [pytest.mark.process, pytest.mark.timeout(120 + 60 * ROUNDS)]


class Member:
    """One process, and the file that it writes what it reads to."""

    def __init__(self, broker: BrokerProcess, protocol: str, output: Path) -> None:
        self.output = output
        with output.open("w") as file:
            command = [sys.executable, str(PROGRAM), broker.bootstrap_servers, GROUP, TOPIC, protocol]
            self.process = subprocess.Popen(command, stdout=file)

    def read(self) -> set[tuple[int, int]]:
        """Partition and offset of every record so far; a line that a kill has torn is left out."""
        lines = self.output.read_text().split("\n")[:-1]
        return {(int(partition), int(offset)) for partition, offset in (line.split() for line in lines)}

    def end(self) -> None:
        """Kill it, paused or not."""
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


class Scene:
    """A broker, a topic that grows, and the members of one group."""

    def __init__(self, broker: BrokerProcess, directory: Path, seed: int) -> None:
        self.broker = broker
        self.random = random.Random(seed)
        self.members: list[Member] = []
        self.removed: list[Member] = []
        self.sent = 0
        self._directory = directory
        self._admin = self._connect()
        wait_until(self._make_topic, within=60, what="the topic is made")

    def _connect(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})

    def _make_topic(self) -> bool:
        try:
            self._admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
        except KafkaException:
            return False
        return True

    def add(self, protocol: str = "consumer") -> None:
        """Start a member."""
        number = len(self.members) + len(self.removed)
        self.members.append(Member(self.broker, protocol, self._directory / f"member-{number}"))

    def produce(self) -> None:
        """Send a round's records, every one acknowledged."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers, "acks": "all", "log_level": 0})
        for _ in range(RECORDS_PER_ROUND):
            producer.produce(TOPIC, value=b"x", partition=self.sent % PARTITIONS)
            self.sent += 1
        assert producer.flush(60) == 0

    def shares(self) -> list[int]:
        """How many partitions each member has by the coordinator's word; checks that none has two members."""
        try:
            described = self._admin.describe_consumer_groups([GROUP], request_timeout=5)[GROUP].result()
        except KafkaException:
            # librdkafka's admin client may wait for ever for a coordinator whose broker has been away.
            self._admin = self._connect()
            return []
        has = [[p.partition for p in member.assignment.topic_partitions] for member in described.members]
        everything = [partition for partitions in has for partition in partitions]
        assert len(everything) == len(set(everything)), f"a partition has two members: {has}"
        return sorted(map(len, has))

    def complete(self) -> None:
        """Wait until those who live share everything, as evenly as it goes, and nobody else has anything."""
        least, extra = divmod(PARTITIONS, len(self.members))
        fair = [least] * (len(self.members) - extra) + [least + 1] * extra
        wait_until(lambda: self.shares() == fair, within=60, what=f"{len(self.members)} members share {PARTITIONS}")

    def kill(self) -> None:
        """A member crashes."""
        member = self.members.pop(self.random.randrange(len(self.members)))
        member.end()
        self.removed.append(member)

    def pause(self) -> None:
        """A member stops for longer than its session, and goes on as if nothing had been."""
        member = self.random.choice(self.members)
        member.process.send_signal(signal.SIGSTOP)
        others = len(self.members) - 1
        wait_until(lambda: len(self.shares()) == others, within=60, what="the paused member is fenced")
        member.process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """The broker crashes, and comes back."""
        self.broker.kill()
        self.broker.start()

    def end(self) -> None:
        """End every member."""
        for member in self.members:
            member.end()

    def everything_is_read(self) -> bool:
        """Return whether some member has read each record, and no member anything else."""
        read = set().union(*(member.read() for member in [*self.members, *self.removed]))
        return read == {(number % PARTITIONS, number // PARTITIONS) for number in range(self.sent)}


@pytest.fixture
def scene(make_broker: Callable[..., BrokerProcess], tmp_path: Path) -> Iterator[Callable[[int], Scene]]:
    """Makes the scene of a seed; sessions are short, so that what is dead is soon known to be."""
    broker = make_broker(
        group_consumer_min_session_timeout_ms="1000",
        group_consumer_session_timeout_ms="3000",
        group_consumer_min_heartbeat_interval_ms="100",
        group_consumer_heartbeat_interval_ms="500",
        group_consumer_assignment_interval_ms="0",
    ).start()
    with ExitStack() as stack:

        def made(seed: int) -> Scene:
            scene = Scene(broker, tmp_path, seed)
            stack.callback(scene.end)
            return scene

        yield made


def _play(scene: Scene, protocols: list[str], actions: list[Callable[[Scene], Any]]) -> None:
    for _ in range(3):
        scene.add(scene.random.choice(protocols))
    for number in range(ROUNDS):
        scene.produce()
        actions[number % len(actions)](scene)
        while len(scene.members) < 2 + number % 4:
            scene.add(scene.random.choice(protocols))
        scene.complete()
    scene.produce()
    wait_until(scene.everything_is_read, within=60, what="every record is read")


def test_every_record_is_read_whatever_happens_to_members_and_broker(scene: Callable[[int], Scene]) -> None:
    played = scene(1)
    _play(played, ["consumer"], [Scene.kill, Scene.pause, Scene.restart])
    assert played.everything_is_read()


def test_every_record_is_read_while_members_change_their_protocol(scene: Callable[[int], Scene]) -> None:
    played = scene(2)
    _play(played, ["consumer", "classic"], [Scene.kill, Scene.restart])
    assert played.everything_is_read()
