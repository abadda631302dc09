"""`LocalCluster`: the processes of all nodes, started together and each by itself.

Owns who runs. Ends every process that it has started. Must not know topics; `pybroker.testing` asks the cluster itself.
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
"""How long a start may take: a recovery of large logs is a start as well."""
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
        """Prepare a cluster of as many nodes as there are `ports`, with its data in `directory`.

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
        """Addresses of all brokers, those that do not run included."""
        return ",".join(node.address for node in self.nodes)

    @property
    def running(self) -> tuple[int, ...]:
        """Ids of the nodes whose processes are there, paused or not."""
        return tuple(number for number, process in self._processes.items() if process.is_running)

    def process(self, node_id: int) -> NodeProcess:
        """Return a node's process; raises ValueError for a node that there is not."""
        try:
            return self._processes[node_id]
        except KeyError:
            known = ", ".join(map(str, self._processes))
            raise ValueError(f"there is no broker {node_id}; the cluster has {known}") from None

    def node(self, node_id: int) -> NodeLayout:
        """Return who a node is; raises ValueError for a node that there is not."""
        return self.process(node_id).node

    def start(self) -> None:
        """Start every node and return when all answer; raises NodeFailedError and leaves none of them running."""
        self.cluster_id = lay_out(self.nodes, self._properties)
        try:
            self.start_nodes(self._processes)
        except BaseException:
            self.kill_all()
            raise

    def start_nodes(self, node_ids: Iterable[int], within_s: float = START_S) -> None:
        """Start nodes together and return when all of them answer; raises NodeFailedError."""
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
        """End a node as a crash does."""
        self.process(node_id).kill()

    def pause_node(self, node_id: int) -> None:
        """Stop a node's process from running, as an overloaded or suspended machine does; its connections stay."""
        self.process(node_id).signal(signal.SIGSTOP)

    def resume_node(self, node_id: int) -> None:
        """Let a paused node go on."""
        self.process(node_id).signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop all nodes cleanly, the last first; raises NodeFailedError after all have ended."""
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
        """End all nodes as a crash does."""
        for process in self._processes.values():
            process.kill()
