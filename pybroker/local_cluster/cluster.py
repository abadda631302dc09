"""`LocalCluster`: the processes of all nodes, started together or one by one.

Owns the processes, and ends every process that it has started. Must not know topics; `pybroker.testing` queries the
cluster itself.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from pybroker.local_cluster.layout import build_layout, lay_out
from pybroker.local_cluster.process import NodeProcess, wait_ready

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pybroker.local_cluster.layout import NodeLayout, NodePorts

START_S = 60.0
"""Timeout of a start in seconds. It includes the recovery of large logs."""
STOP_S = 60.0


class LocalCluster:
    """A cluster of broker processes. Used from one thread at a time."""

    def __init__(
        self,
        directory: Path,
        ports: Sequence[NodePorts],
        properties: Mapping[str, str],
        wrappers: Mapping[int, Sequence[str]] | None = None,
        racks: Sequence[str | None] | None = None,
    ) -> None:
        """Prepare a cluster with one node for each of `ports`, and its data in `directory`.

        `wrappers` has, by node id, the program that runs a node; it must become the node's process. `racks` has the
        rack of each node.
        """
        self.nodes = build_layout(directory, ports, racks)
        self._properties = dict(properties)
        self._processes = {
            node.node_id: NodeProcess(node, (wrappers or {}).get(node.node_id, ())) for node in self.nodes
        }
        self.cluster_id = ""

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses of all brokers, including those that are not running."""
        return ",".join(node.address for node in self.nodes)

    @property
    def running(self) -> tuple[int, ...]:
        """Return the ids of the nodes whose processes exist, paused or not."""
        return tuple(number for number, process in self._processes.items() if process.is_running)

    def process(self, node_id: int) -> NodeProcess:
        """Return a node's process. Raises ValueError for an unknown node."""
        try:
            return self._processes[node_id]
        except KeyError:
            known = ", ".join(map(str, self._processes))
            raise ValueError(f"broker {node_id} does not exist; the cluster has {known}") from None

    def node(self, node_id: int) -> NodeLayout:
        """Return a node's layout. Raises ValueError for an unknown node."""
        return self.process(node_id).node

    def start(self) -> None:
        """Start every node and return when all are ready. Raises NodeFailedError after stopping all of them."""
        self.cluster_id = lay_out(self.nodes, self._properties)
        try:
            self.start_nodes(self._processes)
        except BaseException:
            self.kill_all()
            raise

    def start_nodes(self, node_ids: Iterable[int], within_s: float = START_S) -> None:
        """Start nodes together and return when all of them are ready. Raises NodeFailedError."""
        processes = [self.process(node_id) for node_id in node_ids]
        for process in processes:
            process.launch()
        wait_ready(processes, within_s)

    def stop_node(self, node_id: int, within_s: float = STOP_S) -> int:
        """Stop a node cleanly and return its exit status; raises NodeFailedError."""
        process = self.process(node_id)
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGCONT)
        return process.ended(within_s)

    def kill_node(self, node_id: int) -> None:
        """Kill a node, as a crash does."""
        self.process(node_id).kill()

    def pause_node(self, node_id: int) -> None:
        """Pause a node's process, as on an overloaded or suspended machine; its connections stay open."""
        self.process(node_id).signal(signal.SIGSTOP)

    def resume_node(self, node_id: int) -> None:
        """Continue a paused node."""
        self.process(node_id).signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop all nodes cleanly, the last first. Raises NodeFailedError after all have ended."""
        running = [process for process in self._processes.values() if process.is_running]
        for process in running:
            process.signal(signal.SIGTERM)
            process.signal(signal.SIGCONT)
        failures = []
        for process in running:
            try:
                process.ended(STOP_S)
            except Exception as error:  # noqa: BLE001  # the others are to end as well
                failures.append(error)
        if failures:
            raise failures[0]

    def kill_all(self) -> None:
        """Kill all nodes, as a crash does."""
        for process in self._processes.values():
            process.kill()
