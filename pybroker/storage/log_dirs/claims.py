"""Chooses the log directory of a partition if several have a log of its name, or the metadata assigns another one.

Owns the rules by topic id, moves and assigned directory, and renames the losing directories. Must not open logs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.metadata.replica_directories import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from pybroker.storage.log_dirs.meta_properties import id_bytes
from pybroker.storage.log_dirs.partition_directory import belongs, discard, set_aside
from pybroker.storage.native import move_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.storage.log_dirs.directories import Directories
    from pybroker.storage.log_dirs.log_directory import LogDirectory

log = logging.getLogger("pybroker.storage")

NOWHERE = frozenset({None, LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY})
"""Reserved directory ids in the cluster metadata, which name no directory."""


def id_of(directory: LogDirectory) -> bytes | None:
    """Return the directory's id, 16 bytes; None where it could not be read."""
    return None if directory.meta is None else id_bytes(directory.meta.directory_id)


def complete_found(
    name: str, topic_id: bytes, found: Sequence[LogDirectory], ids: Mapping[str, bytes | Exception | None]
) -> LogDirectory | None:
    """Return the directory with the log `name`. The other logs of this name are renamed.

    `ids` contains, by path, the topic id of each log; None matches any topic. A crash during the swap of a moved log
    leaves two copies: the one with the higher move count is the log, and the other one is removed. Raises OSError, and
    ValueError if the topic of a log cannot be determined.
    """
    own = [directory for directory in found if belongs(ids[f"{directory.path}/{name}"], topic_id)]
    moves = {directory: move_count(str(directory.path / name)) for directory in own} if len(own) > 1 else {}
    latest = max(own, key=lambda directory: moves.get(directory, 0), default=None)
    for directory in found:
        if latest is not None and moves.get(directory, 0) < moves.get(latest, 0):
            log.warning("Removing %s, which was moved to %s", directory.path / name, latest.path)
            discard(directory.path / name)
        elif directory is not latest:
            set_aside(directory.path / name)
    return latest


def is_elsewhere(directories: Directories, own: LogDirectory, assigned: bytes | None) -> bool:
    """Return whether the metadata assigns the partition to a directory that is offline."""
    if assigned in NOWHERE or len(directories.online) == len(directories.logs):
        return False
    return assigned not in {id_of(directory) for directory in directories.online} and assigned != id_of(own)
