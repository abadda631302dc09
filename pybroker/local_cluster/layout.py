"""The layout of a local cluster: node ids, roles, addresses, directories, and the resulting settings.

Owns the files with which a node is started: `server.properties` in Kafka's format, and `meta.properties` in its data
directory. Must not start anything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pybroker.storage.log_dirs.meta_properties import (
    MetaProperties,
    random_id,
    read_meta_properties,
    write_meta_properties,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MOST_VOTERS = 3
"""Number of voters of the metadata quorum; further nodes are brokers only."""
BROKER_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
_PROTOCOL = "security.inter.broker.protocol"


class NodePorts(NamedTuple):
    """The ports of one node."""

    broker: int
    controller: int
    """Unused by a node that is no voter."""
    host: str = "127.0.0.1"


class NodeLayout(NamedTuple):
    """The addresses and directories of one node."""

    node_id: int
    ports: NodePorts
    is_voter: bool
    directory: Path
    """Contains the settings, the data and the log of the process."""
    rack: str | None = None

    @property
    def address(self) -> str:
        """Return the address for clients."""
        return f"{self.ports.host}:{self.ports.broker}"

    @property
    def data(self) -> Path:
        """Return its log directory."""
        return self.directory / "data"

    @property
    def settings(self) -> Path:
        """Return its settings file."""
        return self.directory / "server.properties"

    @property
    def log(self) -> Path:
        """Return the file of its process's standard error, over all runs."""
        return self.directory / "broker.log"


def build_layout(
    directory: Path, ports: Sequence[NodePorts], racks: Sequence[str | None] | None = None
) -> tuple[NodeLayout, ...]:
    """Return the nodes of a cluster in `directory`, numbered from 1, one for each entry of `ports` and of `racks`."""
    each = zip(ports, racks or [None] * len(ports), strict=True)
    return tuple(
        NodeLayout(number, its, number <= MOST_VOTERS, directory / f"broker-{number}", rack)
        for number, (its, rack) in enumerate(each, 1)
    )


def build_properties(nodes: Sequence[NodeLayout], node: NodeLayout, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a node. `given` overrides the defaults, but not ids, roles and addresses.

    `security.inter.broker.protocol` applies to all listeners, also those for clients and controllers.
    """
    protocol = given.get(_PROTOCOL, BROKER_LISTENER)
    voters = ",".join(f"{one.node_id}@{one.ports.host}:{one.ports.controller}" for one in nodes if one.is_voter)
    listeners = [f"{protocol}://{node.ports.host}:{node.ports.broker}"]
    if node.is_voter:
        listeners.append(f"{CONTROLLER_LISTENER}://{node.ports.host}:{node.ports.controller}")
    replicas = min(len(nodes), 3)
    return {
        # The purpose of a cluster of three: one broker may fail.
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(max(replicas - 1, 1)),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(max(replicas - 1, 1)),
        **{key: value for key, value in given.items() if key != _PROTOCOL},
        "process.roles": "broker,controller" if node.is_voter else "broker",
        "node.id": str(node.node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": f"{protocol}:{protocol},{CONTROLLER_LISTENER}:{protocol}",
        "inter.broker.listener.name": protocol,
        "listeners": ",".join(listeners),
        "log.dirs": str(node.data),
        **({} if node.rack is None else {"broker.rack": node.rack}),
    }


def takes_anybody(given: Mapping[str, str]) -> bool:
    """Return whether a client can connect to a cluster with these settings without settings of its own."""
    return given.get(_PROTOCOL, BROKER_LISTENER) == BROKER_LISTENER


def lay_out(nodes: Sequence[NodeLayout], given: Mapping[str, str]) -> str:
    """Write every node's settings, and format new data directories. Returns the cluster id.

    Raises OSError, and ForeignDirectoryError for directories that belong to no node.
    """
    known = [meta.cluster_id for node in nodes if (meta := read_meta_properties(node.data)) is not None]
    cluster_id = known[0] if known else random_id()
    for node in nodes:
        node.data.mkdir(parents=True, exist_ok=True)
        if read_meta_properties(node.data) is None:
            write_meta_properties(node.data, MetaProperties(cluster_id, node.node_id, random_id()))
        properties = build_properties(nodes, node, given)
        text = "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())
        # The settings may contain passwords and keys, also where an older run has left a file that others can read.
        with open(node.settings, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text)
    return cluster_id


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
