"""Three combined Apache Kafka nodes, broker and controller each, as processes.

Implements `pybench.peers.cluster.ClusterPeer`. `pybench.peers.kafka` is a single node.
"""

from __future__ import annotations

import base64
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pybench.peers.cluster import NODES, SETTINGS
from pybench.peers.errors import StartError
from pybench.peers.free_ports import free_ports
from pybench.peers.java import java_command, run_java_tool
from pybench.peers.kafka import SERVER_OPTIONS, responds_api_versions
from pybench.peers.server_log import SERVER_LOG, TAIL_CHARACTERS, log_tail

_READY_S = 120.0
_POLL_S = 0.02


@dataclass(slots=True)
class _Node:
    node_id: int
    port: int
    controller_port: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None


class KafkaCluster:
    """A context manager with three combined nodes. `directory` belongs to the caller."""

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        heap_mb: int = 512,
        format_options: Sequence[str] = (),
        ready_timeout_s: float = _READY_S,
    ) -> None:
        """`heap_mb` applies to each node. `format_options` are further arguments of Kafka's storage tool."""
        self._ready_timeout_s = ready_timeout_s
        self._heap_mb = heap_mb
        self._format_options = tuple(format_options)
        self._settings = {**SETTINGS, "share.coordinator.state.topic.replication.factor": "3", **(overrides or {})}
        ports = free_ports(2 * NODES)
        self._nodes = {
            number: _Node(number, ports[number - 1], ports[NODES + number - 1], directory / f"broker-{number}")
            for number in range(1, NODES + 1)
        }
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._cluster_id = "k" + cluster_id[1:]  # a leading dash reads as an option

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, in order of id, including stopped ones."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self._nodes.values())

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of the controllers of all nodes, in order of id."""
        return ",".join(f"127.0.0.1:{node.controller_port}" for node in self._nodes.values())

    @property
    def voters(self) -> str:
        """The value of `controller.quorum.voters`."""
        return ",".join(f"{one.node_id}@127.0.0.1:{one.controller_port}" for one in self._nodes.values())

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the running processes, in order of node id."""
        return tuple(node.process.pid for node in self._nodes.values() if node.process is not None)

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """The log directories of the nodes, in order of id."""
        return tuple(node.directory / "data" for node in self._nodes.values())

    def start(self) -> Self:
        """Format new storage, start all nodes, and return when each responds. Raises StartError."""
        for node in self._nodes.values():
            self._format(node)
        for node in self._nodes.values():
            _launch(node, self._heap_mb)
        for node in self._nodes.values():
            _await_ready(node, self._ready_timeout_s)
        return self

    def start_node(self, node_id: int) -> None:
        """Start a stopped or killed node. Returns when it responds. Raises StartError."""
        _launch(self._nodes[node_id], self._heap_mb)
        _await_ready(self._nodes[node_id], self._ready_timeout_s)

    def stop_node(self, node_id: int) -> None:
        """Stop a node by SIGTERM, or by SIGKILL after a minute."""
        node = self._nodes[node_id]
        if node.process is not None:
            node.process.send_signal(signal.SIGTERM)
            try:
                node.process.wait(60)
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()
            node.process = None

    def kill_node(self, node_id: int) -> None:
        """Kill a node by SIGKILL."""
        node = self._nodes[node_id]
        if node.process is not None:
            node.process.kill()
            node.process.wait()
            node.process = None

    def pause_node(self, node_id: int) -> None:
        """Pause a node by SIGSTOP. Its connections stay open."""
        self._signal(node_id, signal.SIGSTOP)

    def resume_node(self, node_id: int) -> None:
        """Resume a node by SIGCONT."""
        self._signal(node_id, signal.SIGCONT)

    def stop(self) -> None:
        """Stop all nodes together: the last node of a quorum would otherwise wait for the others until its timeout."""
        for node in self._nodes.values():
            if node.process is not None:
                node.process.kill()
        for node_id in self._nodes:
            self.kill_node(node_id)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _signal(self, node_id: int, number: signal.Signals) -> None:
        process = self._nodes[node_id].process
        if process is not None:
            process.send_signal(number)

    def _format(self, node: _Node) -> None:
        node.directory.mkdir(parents=True, exist_ok=True)
        config = node.directory / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._properties(node).items()))
        if (node.directory / "data" / "meta.properties").exists():
            return
        done = run_java_tool("storage", "format", "-t", self._cluster_id, "-c", str(config), *self._format_options)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()[-TAIL_CHARACTERS:]
            raise StartError(f"Kafka's storage tool refused {config}: {said}")

    def _properties(self, node: _Node) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": str(node.node_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{node.port}",
            "controller.quorum.voters": self.voters,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(node.directory / "data"),
            **self._settings,
        }


def _launch(node: _Node, heap_mb: int) -> None:
    heap = (f"-Xmx{heap_mb}M", f"-Xms{heap_mb}M")
    options = (*heap, *(option for option in SERVER_OPTIONS if not option.startswith("-Xm")))
    words = java_command("kafka.Kafka", options=options, log_level="info")
    with (node.directory / SERVER_LOG).open("ab") as log:
        node.process = subprocess.Popen(
            [*words, str(node.directory / "server.properties")], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )


def _await_ready(node: _Node, within_s: float) -> None:
    assert node.process is not None
    deadline = time.monotonic() + within_s
    while not responds_api_versions("127.0.0.1", node.port):
        if node.process.poll() is not None:
            raise StartError(f"Apache Kafka ended with status {node.process.returncode}:\n{log_tail(node.directory)}")
        if time.monotonic() > deadline:
            raise StartError(f"Apache Kafka was not ready after {within_s:.0f} s:\n{log_tail(node.directory)}")
        time.sleep(_POLL_S)
