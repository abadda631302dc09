"""A partition's directory, seen from outside: its name, its topic, and its renaming when it is obsolete.

Owns the names that distinguish kinds of directories. Must not open a log.
"""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("pybroker.storage")

# `-` and digits end the name of a partition's directory; the topic name itself may contain dashes and digits.
_DIRECTORY = re.compile(r"^(?P<topic>.+)-(?P<index>\d+)$")
_FUTURE = re.compile(r"^(?P<topic>.+)-(?P<index>\d+)\.[0-9a-f]{32}-future$")
_LONGEST_NAME = 255
_DELETED = re.compile(r"^.+-\d+\.[0-9a-f]{32}-delete$")
_METADATA_TOPIC = "__cluster_metadata"

METADATA_DIRECTORY = f"{_METADATA_TOPIC}-0"
"""The directory of the metadata log. It is not a partition's."""


PARTITION_METADATA = "partition.metadata"
"""The file of a partition's directory that contains the topic id (KIP-516)."""


def parse_name(name: str) -> tuple[str, int] | None:
    """Return topic and index of a partition's directory; None for any other name, including the metadata log's."""
    match = _DIRECTORY.match(name)
    if match is None or match["topic"] == _METADATA_TOPIC:
        return None
    return match["topic"], int(match["index"])


def future_name(topic: str, index: int) -> str | None:
    """Return a name for the directory of a future replica, None if it would be too long for a file system."""
    name = f"{topic}-{index}.{os.urandom(16).hex()}-future"
    return name if len(name) <= _LONGEST_NAME else None


def parse_future_name(name: str) -> tuple[str, int] | None:
    """Return topic and index of a future replica's directory, None for any other name."""
    match = _FUTURE.match(name)
    return None if match is None else (match["topic"], int(match["index"]))


def topic_of(name: str) -> str:
    """Return the topic in the directory name of a partition or future replica; any other name is returned unchanged."""
    parsed = parse_name(name) or parse_future_name(name)
    return name if parsed is None else parsed[0]


def is_deleted(name: str) -> bool:
    """Return whether the name is that of a directory whose deletion had begun."""
    return _DELETED.match(name) is not None


def belongs(there: bytes | Exception | None, topic_id: bytes) -> bool:
    """Return whether a directory belongs to this topic. `there` is the result of `read_topic_ids` for it.

    A directory without a topic id belongs to any topic. Raises OSError, and ValueError if the file with the id is
    damaged: then the topic is unknown.
    """
    if isinstance(there, Exception):
        raise there
    return there in (None, topic_id)


def remove(path: Path) -> None:
    """Remove the directory; if it cannot be removed, the next start retries."""
    # A partition's directory contains files only.
    try:
        for entry in path.iterdir():
            entry.unlink()
        path.rmdir()
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error)


def discard(path: Path) -> None:
    """Rename the directory so that it is not taken for a partition's, then remove it; raises OSError."""
    deleted = path.with_name(f"{path.name}.{os.urandom(16).hex()}-delete")
    path.rename(deleted)
    remove(deleted)


def find_partitions(path: Path) -> list[Path]:
    """Return the directories of partitions and of future replicas in a log directory; raises OSError."""
    with os.scandir(path) as entries:
        names = sorted(it.name for it in entries if _is_of_partition(it.name) and it.is_dir())
    return [path / name for name in names]


def _is_of_partition(name: str) -> bool:
    return parse_name(name) is not None or parse_future_name(name) is not None


def set_aside(path: Path) -> None:
    """Rename the directory as a stray, so that it is not taken for a partition's; raises OSError."""
    stray = path.with_name(f"{path.name}.{os.urandom(16).hex()}-stray")
    log.warning("%s belongs to no topic of this cluster: renaming the directory to %s", path, stray.name)
    path.rename(stray)


def bytes_from(path: Path, recovery_point: int) -> int:
    """Return the bytes of the segments that a recovery reads: from the last one below the recovery point on."""
    try:
        with os.scandir(path) as entries:
            sizes = {entry.name: entry.stat().st_size for entry in entries if entry.name.endswith(".log")}
    except OSError:
        return 0
    names = sorted(sizes)
    below = sum(1 for name in names if name[:-4].isdigit() and int(name[:-4]) < recovery_point)
    return sum(sizes[name] for name in names[max(0, below - 1) :])
