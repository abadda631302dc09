"""Three pybroker nodes as processes, with the interface of `pybench.peers.cluster.ClusterPeer`.

Owns their ports while they run. `pybroker.local_cluster` owns the processes.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from pybench.peers.cluster import NODES, SETTINGS
from pybench.peers.errors import StartError
from pybench.peers.free_ports import free_ports
from pybroker.local_cluster.cluster import LocalCluster
from pybroker.local_cluster.layout import NodePorts
from pybroker.local_cluster.process import NodeFailedError


class PybrokerCluster:
    """A context manager with three combined nodes. `directory` belongs to the caller."""

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        ports = free_ports(2 * NODES)
        pairs = [NodePorts(ports[at], ports[at + 1]) for at in range(0, len(ports), 2)]
        self._local = LocalCluster(directory, pairs, {**SETTINGS, **(overrides or {})})

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, in order of id, including stopped ones."""
        return self._local.bootstrap_servers

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of the controllers of all nodes, in order of id."""
        return ",".join(f"127.0.0.1:{node.ports.controller}" for node in self._local.nodes)

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the running processes, in order of node id."""
        marks = [self._local.process(number).mark for number in self._local.running]
        return tuple(mark.pid for mark in marks if mark is not None)

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """The log directories of the nodes, in order of id."""
        return tuple(node.data for node in self._local.nodes)

    def start(self) -> Self:
        """Format new storage, start all nodes, and return when each responds. Raises StartError."""
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            self._local.start()
        except NodeFailedError as error:
            raise StartError(str(error)) from None
        return self

    def start_node(self, node_id: int) -> None:
        """Start a stopped or killed node. Returns when it responds. Raises StartError."""
        try:
            self._local.start_nodes([node_id])
        except NodeFailedError as error:
            raise StartError(str(error)) from None

    def stop_node(self, node_id: int) -> None:
        """Stop a node by SIGTERM, or by SIGKILL if it does not exit, as for Kafka."""
        self._local.process(node_id).signal(signal.SIGTERM)
        self._local.process(node_id).ended(60)

    def kill_node(self, node_id: int) -> None:
        """Kill a node by SIGKILL."""
        self._local.kill_node(node_id)

    def pause_node(self, node_id: int) -> None:
        """Pause a node by SIGSTOP. Its connections stay open."""
        self._local.pause_node(node_id)

    def resume_node(self, node_id: int) -> None:
        """Resume a node by SIGCONT."""
        self._local.resume_node(node_id)

    def stop(self) -> None:
        """Stop all nodes. Kills those that do not exit in time."""
        try:
            self._local.stop()
        finally:
            self._local.kill_all()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
