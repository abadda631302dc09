"""The commands of docs/guides/cluster.md, in their order, on machines that are directories of this one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client import Admin, TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from pybroker.config.endpoint import Endpoint
from pybroker.local_cluster.layout import BROKER_LISTENER, CONTROLLER_LISTENER
from pybroker.testing.ports import ReservedPorts
from tests.support import guides
from tests.support.conditions import wait_until

pytestmark = pytest.mark.process

PAGE = "docs/guides/cluster.md"
PROGRAMS = Path(sys.executable).parent
NAMES = ("one", "two", "three", "four")
VOTERS = NAMES[:3]
_ON = re.compile(r"#\s+on (?P<each>each machine|machine (?P<number>\d))")
_WITHIN_S = 60.0
ORDERS = TopicPartition("orders", 0)


class Machines:
    """The machines of the page: what a command of it becomes here, and the nodes that run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reserved = {name: ReservedPorts() for name in NAMES}
        self._addresses: dict[str, str] = {}
        for name, ports in self._reserved.items():
            ends = [Endpoint(listener, "127.0.0.1", 0) for listener in (BROKER_LISTENER, CONTROLLER_LISTENER)]
            for port, end in zip((9092, 9093), ports.reserve(ends), strict=True):
                self._addresses[f"{name}.example:{port}"] = f"127.0.0.1:{end.port}"
        self.cluster_id = ""
        self.nodes: dict[int, subprocess.Popen[str]] = {}

    def end(self) -> None:
        for number in list(self.nodes):
            self.kill(number)
        for ports in self._reserved.values():
            ports.release()

    def kill(self, number: int) -> int:
        """End a node, where it has not ended by itself; returns its exit status."""
        return self.ended(number, within_s=0)

    def ended(self, number: int, *, within_s: float = _WITHIN_S) -> int:
        """Wait for a node to end by itself, and kill it where it does not; returns its exit status."""
        node = self.nodes.pop(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            node.wait(within_s)
        node.kill()
        node.communicate()
        return node.returncode

    def address(self, name: str) -> str:
        """Where clients find a machine."""
        return self._addresses[f"{name}.example:9092"]

    def folder(self, number: int) -> Path:
        """A machine's working directory, where its server.properties lies."""
        return self._directory / NAMES[number - 1]

    def write_settings(self, number: int, page: str) -> None:
        """Write a machine's file as the page shows it for the first machine of its kind."""
        name = NAMES[number - 1]
        kept = []
        for line in page.splitlines():
            key, _, value = line.partition("=")
            if key == "node.id":
                value = str(number)
            elif key == "listeners":
                for port in (9092, 9093):
                    value = value.replace(f"://:{port}", f"://{self._addresses[f'{name}.example:{port}']}")
            elif key == "advertised.listeners":
                value = re.sub(r"\w+\.example", f"{name}.example", value)
            elif key == "log.dirs":
                value = str(self.folder(number) / "data")
            kept.append(f"{key}={self._here(value)}\n")
        self.folder(number).mkdir()
        (self.folder(number) / "server.properties").write_text("".join(kept))

    def run(self, block: guides.Block) -> str:
        """Run a block's commands, one after the other, and return what the last one printed."""
        printed = ""
        for command in block.code.replace("\\\n", " ").splitlines():
            where = _ON.search(command)
            if where is None:
                printed = self._run(command, self._directory)
                continue
            numbers = range(1, len(VOTERS) + 1) if where["number"] is None else [int(where["number"])]
            if command.startswith("pybroker start"):
                self._start(command, numbers)
            for number in numbers:
                if not command.startswith("pybroker start"):
                    printed = self._run(command, self.folder(number))
        return printed

    def _here(self, text: str) -> str:
        for old, new in self._addresses.items():
            text = text.replace(old, new)
        return text.replace("THE-ID", self.cluster_id)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}

    def _run(self, command: str, directory: Path) -> str:
        words = ["bash", "-eo", "pipefail", "-c", self._here(command)]
        ran = subprocess.run(
            words, cwd=directory, env=self._environment(), capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
        if command.startswith("pybroker random-uuid"):
            self.cluster_id = ran.stdout.strip()
        return ran.stdout

    def _start(self, command: str, numbers: range | list[int]) -> None:
        words = ["bash", "-c", f"exec {self._here(command)}"]
        for number in numbers:
            folder = self.folder(number)
            if number in self.nodes:  # the page has stopped it
                assert self.ended(number) == 0
            with (folder / "log").open("a") as log:
                self.nodes[number] = subprocess.Popen(
                    words, cwd=folder, env=self._environment(), stdout=subprocess.PIPE, stderr=log, text=True
                )
        for number in numbers:
            stdout = self.nodes[number].stdout
            assert stdout is not None
            assert "ready" in stdout.readline(), (self.folder(number) / "log").read_text()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    yield made
    made.end()


def under_replicated(machines: Machines, block: guides.Block) -> str:
    """What the last command of a block prints once more."""
    return machines._run(block.code.splitlines()[-1], machines.folder(1))


def replicas(machines: Machines) -> dict[int, set[int]]:
    """The in-sync replicas of each partition of the topic, where they are all replicas; empty before that."""
    try:
        with Admin(machines.address("one")) as admin:
            (topic,) = admin.describe_topics(["orders"])
    except (BrokerError, ClientError):
        return {}
    if any(set(part.isr) != set(part.replicas) or len(part.isr) != len(VOTERS) for part in topic.partitions):
        return {}
    return {part.index: set(part.replicas) for part in topic.partitions}


def test_the_commands_of_the_page_do_what_it_says(machines: Machines) -> None:
    blocks = guides.blocks(PAGE)
    files = [block.code for block in blocks if block.language == "properties" and "node.id=" in block.code]
    commands = [block for block in blocks if block.test == "tests/conformance/test_cluster_guide.py"]
    assert (len(files), len(commands)) == (2, 6)
    start, grow, replace, leave, restart, finalize = commands

    for number in (1, 2, 3):
        machines.write_settings(number, files[0])
    assert "Created topic orders." in machines.run(start)
    wait_until(lambda: replicas(machines), within=_WITHIN_S, what="the topic has three replicas")

    machines.write_settings(4, files[1])
    machines.run(grow)
    wait_until(lambda: 4 in set().union(*replicas(machines).values()), within=_WITHIN_S, what="broker 4 has replicas")

    machines.kill(4)
    shutil.rmtree(machines.folder(4) / "data")
    machines.run(replace)
    wait_until(lambda: not under_replicated(machines, replace), within=_WITHIN_S, what="nothing is under-replicated")
    assert 4 in set().union(*replicas(machines).values())

    machines.run(leave)
    assert machines.ended(4) == 0
    with Admin(machines.address("one")) as admin:
        known = {broker.node_id for broker in admin.describe_cluster(include_fenced=True).brokers}
    assert known == {1, 2, 3}
    assert set().union(*replicas(machines).values()) == {1, 2, 3}

    machines.run(restart)
    wait_until(lambda: not under_replicated(machines, restart), within=_WITHIN_S, what="nothing is under-replicated")
    machines.run(finalize)
