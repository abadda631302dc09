"""Who is who in a local cluster: node ids, roles, addresses, directories, and the settings that follow from them.

Owns the files that a node is started with: `server.properties` in Kafka's own form, and `meta.properties` in its data
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
"""Nodes that vote in the metadata quorum; further ones are brokers alone."""
BROKER_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
_PROTOCOL = "security.inter.broker.protocol"


class NodePorts(NamedTuple):
    """Where one node listens."""

    broker: int
    controller: int
    """Not listened on by a node that does not vote."""
    host: str = "127.0.0.1"


class NodeLayout(NamedTuple):
    """One node: where it listens and what it has."""

    node_id: int
    ports: NodePorts
    is_voter: bool
    directory: Path
    """Holds the settings, the data and the log of the process."""
    rack: str | None = None

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"{self.ports.host}:{self.ports.broker}"

    @property
    def data(self) -> Path:
        """Its log directory."""
        return self.directory / "data"

    @property
    def settings(self) -> Path:
        """Its file of settings."""
        return self.directory / "server.properties"

    @property
    def log(self) -> Path:
        """What its process writes to standard error, over all runs."""
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
    """Return the settings of a node. What is in `given` stands over the defaults, not over who is who.

    Its `security.inter.broker.protocol` is that of all listeners, for clients and controllers as well.
    """
    protocol = given.get(_PROTOCOL, BROKER_LISTENER)
    voters = ",".join(f"{one.node_id}@{one.ports.host}:{one.ports.controller}" for one in nodes if one.is_voter)
    listeners = [f"{protocol}://{node.ports.host}:{node.ports.broker}"]
    if node.is_voter:
        listeners.append(f"{CONTROLLER_LISTENER}://{node.ports.host}:{node.ports.controller}")
    replicas = min(len(nodes), 3)
    return {
        # What a cluster of three is made for; one broker of them may fail.
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
    """Return whether a client needs no settings of its own to get in to a cluster with these."""
    return given.get(_PROTOCOL, BROKER_LISTENER) == BROKER_LISTENER


def lay_out(nodes: Sequence[NodeLayout], given: Mapping[str, str]) -> str:
    """Write every node's settings, and format data directories that are new; return the cluster id.

    Raises OSError, and ForeignDirectoryError for directories that are no nodes'.
    """
    known = [meta.cluster_id for node in nodes if (meta := read_meta_properties(node.data)) is not None]
    cluster_id = known[0] if known else random_id()
    for node in nodes:
        node.data.mkdir(parents=True, exist_ok=True)
        if read_meta_properties(node.data) is None:
            write_meta_properties(node.data, MetaProperties(cluster_id, node.node_id, random_id()))
        properties = build_properties(nodes, node, given)
        text = "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())
        # Passwords and keys may be among them, also where an older run has left a file that others may read.
        with open(node.settings, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text)
    return cluster_id


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
