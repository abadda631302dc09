"""A cluster as the comparison sees it: what both peers of three nodes offer, and how their processes are ended.

Knows neither of the two brokers; `kafka_cluster` and `pybroker_cluster` start them.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

NODES = 3
SETTINGS = {
    # One broker of three may fail, and acks=all means two logs at least.
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
"""What both clusters are given beside the settings of all peers."""


class ClusterPeer(Protocol):
    """Three combined nodes, with ids from 1, from entering to leaving."""

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, by id, also of those that do not run."""

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of all nodes' controllers, by id."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that run, by id."""

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """Where the nodes' partitions lie, by id."""

    def start(self) -> Self:
        """Start every node on storage that is formatted, together; return when each answers."""

    def start_node(self, node_id: int) -> None:
        """Start one that was stopped or killed; return when it answers."""

    def stop_node(self, node_id: int) -> None:
        """End one by SIGTERM."""

    def kill_node(self, node_id: int) -> None:
        """End one by SIGKILL."""

    def pause_node(self, node_id: int) -> None:
        """SIGSTOP: the process no longer runs, its connections stay."""

    def resume_node(self, node_id: int) -> None:
        """SIGCONT."""

    def stop(self) -> None:
        """End every node."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
