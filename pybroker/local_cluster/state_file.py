"""`cluster.json`: which nodes a directory's cluster has, at which ports, and which processes run them.

Owns the file's form and the lock under which it changes: commands in several terminals act on one cluster. Must not
start or signal anything.
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
    """The file is none of a local cluster; the text names it."""


class NodeState(msgspec.Struct, frozen=True):
    """One node, and the process that runs it as far as is known."""

    node_id: int
    broker_port: int
    controller_port: int
    pid: int = 0
    """0 where it was never started."""
    started: int = 0
    """When the process started, in clock ticks since the machine's boot: another process may get its id."""


class ClusterState(msgspec.Struct, frozen=True):
    """All nodes, in the order of their ids."""

    cluster_id: str
    nodes: tuple[NodeState, ...]
    stopping: bool = False
    """Whether `pybroker cluster stop` ends the nodes, or has ended them."""

    def replace(self, changed: NodeState) -> ClusterState:
        """Return the state with another word on one node, which was started."""
        nodes = tuple(changed if node.node_id == changed.node_id else node for node in self.nodes)
        return ClusterState(self.cluster_id, nodes)


def read_state(directory: Path) -> ClusterState | None:
    """Return what the file says, None where there is none; raises OSError and StateFileError."""
    path = directory / FILE_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterState)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise StateFileError(f"{path}: not the state of a local cluster: {error}") from None


def write_state(directory: Path, state: ClusterState) -> None:
    """Replace the file; raises OSError."""
    replace_file(directory / FILE_NAME, msgspec.json.encode(state).decode() + "\n")


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep other commands from changing the file for the block; raises OSError."""
    with (directory / _LOCK_NAME).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
