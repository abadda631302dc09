"""Processes of a cluster with dynamic voters (KIP-853), formatted by `pybroker format`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pybroker.cli.main import main
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.quorum import QuorumDescription, RaftEndpoint
from pybroker.client.errors import BrokerError, ClientError
from pybroker.local_cluster.layout import NodeLayout, NodePorts
from pybroker.local_cluster.process import NodeProcess, wait_ready
from pybroker.storage.log_dirs.meta_properties import id_bytes, id_text, random_id, read_meta_properties
from tests.support.conditions import wait_until
from tests.support.processes import free_port

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_READY_S = 60.0


class DynamicCluster:
    """Combined nodes 1, 2, ... The first `voters` of them are the initial voters."""

    def __init__(self, directory: Path, voters: int, **settings: str) -> None:
        self._directory, self._settings = directory, settings
        self.nodes: dict[int, NodeProcess] = {}
        layouts = [self._lay_out(number) for number in range(1, voters + 1)]
        self.bootstrap = ",".join(f"127.0.0.1:{one.ports.controller}" for one in layouts)
        first = ",".join(f"{one.node_id}@127.0.0.1:{one.ports.controller}:{random_id()}" for one in layouts)
        for layout in layouts:
            self._format(layout, "--initial-controllers", first)

    @property
    def bootstrap_servers(self) -> str:
        """The client listeners of the running nodes."""
        return ",".join(node.node.address for node in self.nodes.values() if node.is_running)

    def controller_of(self, node_id: int) -> str:
        """Return the address of a node's controller listener."""
        return f"127.0.0.1:{self.nodes[node_id].node.ports.controller}"

    def join(self, node_id: int, **settings: str) -> NodeProcess:
        """Format a node that is not a voter."""
        known = self.nodes.get(node_id)
        return self._format(self._lay_out(node_id) if known is None else known.node, "-N", **settings)

    def start(self, *node_ids: int) -> None:
        """Start nodes, and wait until they are ready."""
        processes = [self.nodes[node_id] for node_id in node_ids or self.nodes]
        for process in processes:
            process.launch()
        wait_ready(processes, _READY_S)

    def move(self, node_id: int) -> None:
        """Kill a node and change the port of its controller listener for its next start."""
        self.nodes[node_id].kill()
        before = self.nodes[node_id].node
        layout = before._replace(ports=before.ports._replace(controller=free_port()))
        text = layout.settings.read_text()
        old, new = (f"127.0.0.1:{one.ports.controller}" for one in (before, layout))
        layout.settings.write_text(text.replace(f"CONTROLLER://{old}", f"CONTROLLER://{new}"))
        self.nodes[node_id] = NodeProcess(layout)

    def directory_id(self, node_id: int) -> bytes:
        """Return the directory id of a node's metadata log."""
        meta = read_meta_properties(self.nodes[node_id].node.data)
        assert meta is not None
        return id_bytes(meta.directory_id)

    def endpoints(self, node_id: int) -> tuple[RaftEndpoint, ...]:
        """Return the endpoints of a node's controller."""
        return (RaftEndpoint("CONTROLLER", "127.0.0.1", self.nodes[node_id].node.ports.controller),)

    def add(self, node_id: int) -> None:
        """Add a node as a voter, with retries while it lags behind."""
        with self.admin() as admin:
            admin.add_raft_voter(node_id, self.directory_id(node_id), self.endpoints(node_id), cluster_id=CLUSTER_ID)

    def remove(self, node_id: int, directory_id: bytes | None = None) -> None:
        """Remove a node from the voters."""
        with self.admin() as admin:
            admin.remove_raft_voter(node_id, directory_id or self.directory_id(node_id), cluster_id=CLUSTER_ID)

    def quorum(self) -> QuorumDescription:
        """Return the description of the quorum from its leader."""
        with self.admin() as admin:
            return admin.describe_quorum()

    def wait_voters(self, *node_ids: int) -> QuorumDescription:
        """Wait until exactly these nodes are voters and one of them is the leader."""

        def found() -> bool:
            try:
                quorum = self.quorum()
            except (BrokerError, ClientError):
                return False
            return tuple(one.node_id for one in quorum.voters) == node_ids and quorum.leader_id in node_ids

        wait_until(found, within=60, what=f"the voters {node_ids}")
        return self.quorum()

    @contextmanager
    def admin(self) -> Iterator[Admin]:
        """Yield an admin client of the running nodes."""
        with Admin(self.bootstrap_servers, {"default.api.timeout.ms": 30_000}) as admin:
            yield admin

    def end(self) -> None:
        """End every process."""
        for node in self.nodes.values():
            node.kill()

    def _lay_out(self, node_id: int) -> NodeLayout:
        ports = NodePorts(free_port(), free_port())
        return NodeLayout(node_id, ports, True, self._directory / f"node-{node_id}")

    def _format(self, layout: NodeLayout, *options: str, **settings: str) -> NodeProcess:
        layout.data.mkdir(parents=True)
        listeners = f"PLAINTEXT://{layout.address},CONTROLLER://127.0.0.1:{layout.ports.controller}"
        given = {
            "process.roles": "broker,controller",
            "node.id": str(layout.node_id),
            "controller.quorum.bootstrap.servers": self.bootstrap,
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "log.dirs": str(layout.data),
            "num.network.threads": "1",
        }
        for name, value in {**self._settings, **settings}.items():
            given[name.replace("_", ".")] = value
        layout.settings.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        assert main(["format", "-t", CLUSTER_ID, "-c", str(layout.settings), *options]) == 0
        process = self.nodes[layout.node_id] = NodeProcess(layout)
        return process


@contextmanager
def dynamic_cluster(directory: Path, voters: int, **settings: str) -> Iterator[DynamicCluster]:
    """Yield a running cluster. Kills its processes at the end."""
    cluster = DynamicCluster(directory, voters, **settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def shown(directory_id: bytes) -> str:
    """Return a directory id as tools print it."""
    return id_text(directory_id)
