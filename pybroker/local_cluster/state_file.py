"""`cluster.json`: the nodes of a directory's cluster, their ports, and their processes.

Owns the file's format and the lock for its changes: commands in several terminals use one cluster. Must not start or
signal anything.
"""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING

import msgspec

from pybroker.storage.log_dirs.atomic_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_NAME = "cluster.json"
_LOCK_NAME = "cluster.lock"


class StateFileError(Exception):
    """The file is no state of a local cluster. The message has its path."""


class NodeState(msgspec.Struct, frozen=True):
    """One node, and its last known process."""

    node_id: int
    broker_port: int
    controller_port: int
    pid: int = 0
    """0 where it was never started."""
    started: int = 0
    """Start time of the process, in clock ticks since the machine's boot: another process may get its id."""


class ClusterState(msgspec.Struct, frozen=True):
    """All nodes, in the order of their ids."""

    cluster_id: str
    nodes: tuple[NodeState, ...]
    stopping: bool = False
    """Whether `pybroker cluster stop` ends the nodes, or has ended them."""

    def replace(self, changed: NodeState) -> ClusterState:
        """Return the state with the changed state of one node, which was started."""
        nodes = tuple(changed if node.node_id == changed.node_id else node for node in self.nodes)
        return ClusterState(self.cluster_id, nodes)


def read_state(directory: Path) -> ClusterState | None:
    """Return the state in the file, None without a file. Raises OSError and StateFileError."""
    path = directory / FILE_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterState)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise StateFileError(f"{path}: not the state file of a local cluster: {error}") from None


def write_state(directory: Path, state: ClusterState) -> None:
    """Replace the file; raises OSError."""
    replace_file(directory / FILE_NAME, msgspec.json.encode(state).decode() + "\n")


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock out other commands during the block. Raises OSError."""
    with (directory / _LOCK_NAME).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
