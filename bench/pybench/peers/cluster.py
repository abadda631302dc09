"""The interface of a three-node cluster in the comparison.

Knows neither broker. `kafka_cluster` and `pybroker_cluster` implement the interface.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

NODES = 3
SETTINGS = {
    # One broker of three may fail, and acks=all requires at least two replicas.
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
"""The settings of both clusters, in addition to those of all peers."""


class ClusterPeer(Protocol):
    """A context manager with three combined nodes, with ids from 1."""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, in order of id, including stopped ones."""

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of the controllers of all nodes, in order of id."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the running processes, in order of node id."""

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """The log directories of the nodes, in order of id."""

    def start(self) -> Self:
        """Start all nodes together on formatted storage. Returns when each responds."""

    def start_node(self, node_id: int) -> None:
        """Start a stopped or killed node. Returns when it responds."""

    def stop_node(self, node_id: int) -> None:
        """Stop a node by SIGTERM."""

    def kill_node(self, node_id: int) -> None:
        """Kill a node by SIGKILL."""

    def pause_node(self, node_id: int) -> None:
        """Pause a node by SIGSTOP. Its connections stay open."""

    def resume_node(self, node_id: int) -> None:
        """Resume a node by SIGCONT."""

    def stop(self) -> None:
        """Stop every node."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
