"""Log directories: their node id, the last shutdown, free space and inodes, and the file system.

Owns the checks. Must change nothing: a broker may be running.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.doctor.finding import FAIL, OK, WARN, Finding
from pybroker.storage.errors import StorageError
from pybroker.storage.log_dirs.log_directory import CLEAN_SHUTDOWN_NAME, holder_of
from pybroker.storage.log_dirs.meta_properties import read_meta_properties
from pybroker.storage.log_dirs.partition_directory import find_partitions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pybroker.cli.doctor.machine import Machine
    from pybroker.config.broker import BrokerConfig

_GIB = 1024**3
_FEW_INODES = 10_000
_VOLATILE = {"tmpfs", "ramfs"}
_OF_NETWORKS = {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs"}
_FILES_OF_A_LOG = 5
"""Files of a log: a segment, its two indexes, the producer snapshot, and other open files."""


class LogFiles(NamedTuple):
    """Number of files in the log directories."""

    partitions: int
    segments: int


def count_logs(config: BrokerConfig) -> LogFiles:
    """Count partitions and segments; unreadable directories are skipped."""
    partitions = segments = 0
    for directory in config.log_directories:
        try:
            logs = find_partitions(directory)
        except OSError:
            continue
        partitions += len(logs)
        segments += sum(1 for log in logs for name in os.listdir(log) if name.endswith(".log"))
    return LogFiles(partitions, segments)


def running_broker(config: BrokerConfig) -> int | None:
    """Return the process that has locked a log directory; None without one, or where it is not visible."""
    for directory in config.log_directories:
        try:
            pid = holder_of(directory)
        except OSError:
            continue
        if pid is not None:
            return pid
    return None


def check_directories(config: BrokerConfig, machine: Machine, pid: int | None) -> Iterator[Finding]:
    """Check every log directory; `pid` is the running broker, None where none runs."""
    for path in dict.fromkeys((*config.log_directories, config.metadata_directory)):
        yield _check_identity(path, config, pid)
        there = next(one for one in (path, *path.parents) if one.exists())
        yield from _check_capacity(path, there, config)
        kind = machine.file_system(there)
        if kind in _VOLATILE:
            yield Finding(WARN, "file system", f"{path} is on {kind}: a reboot deletes it", "use a disk")
        elif kind in _OF_NETWORKS:
            advice = "use a local disk: locks, syncs and renames over a network are slower and less reliable"
            yield Finding(WARN, "file system", f"{path} is on {kind}", advice)


def _check_identity(path: Path, config: BrokerConfig, pid: int | None) -> Finding:
    check = "log directory"
    if not path.exists():
        return _check_absent(path, check, config)
    if not path.is_dir() or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        advice = "set log.dirs to a directory that this user may read and write"
        return Finding(FAIL, check, f"this user cannot read and write {path}", advice)
    try:
        meta = read_meta_properties(path)
    except (OSError, StorageError, ValueError) as error:
        return Finding(
            FAIL, check, f"{path}: {error}", "restore meta.properties, or move the directory's files elsewhere"
        )
    if meta is None:
        return _check_absent(path, check, config)
    if meta.node_id != config.node_id:
        advice = "set node.id to that id, or log.dirs to this node's directories"
        return Finding(FAIL, check, f"{path} belongs to node {meta.node_id}, not {config.node_id}", advice)
    shown = f"{path} belongs to node {meta.node_id} of cluster {meta.cluster_id}"
    if pid is not None:
        return Finding(OK, check, f"{shown}; process {pid} uses it")
    if (path / CLEAN_SHUTDOWN_NAME).exists():
        return Finding(OK, check, f"{shown}; the last shutdown was clean")
    logs = len(find_partitions(path))
    advice = f"no action: the next start recovers the logs of {logs} partitions; a clean shutdown (SIGTERM) avoids this"
    return Finding(WARN if logs else OK, check, f"{shown}; the last shutdown was not clean", advice if logs else "")


def _check_absent(path: Path, check: str, config: BrokerConfig) -> Finding:
    if not config.makes_its_cluster:
        return Finding(FAIL, check, f"{path} is not formatted", "run `pybroker format` on it with the cluster's id")
    there = next(one for one in (path, *path.parents) if one.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return Finding(
            FAIL, check, f"{path} cannot be created in {there}", "set log.dirs elsewhere, or change its owner"
        )
    return Finding(OK, check, f"{path} is created at the first start")


def _check_capacity(path: Path, there: Path, config: BrokerConfig) -> Iterator[Finding]:
    try:
        status = os.statvfs(there)
    except OSError as error:
        yield Finding(FAIL, "disk space", f"{path}: {error.strerror}", "check the disk")
        return
    free, whole = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    words = f"{path}: {free / _GIB:.1f} GiB of {whole / _GIB:.1f} are free"
    least = 2 * config.log_segment_bytes
    advice = (
        "free space, or lower retention (log.retention.bytes, log.retention.ms): a full disk takes its logs offline"
    )
    if free < config.log_segment_bytes:
        yield Finding(FAIL, "disk space", f"{words}, less than one segment (log.segment.bytes)", advice)
    elif free < max(least, whole // 10):
        yield Finding(WARN, "disk space", words, advice)
    else:
        yield Finding(OK, "disk space", words)
    if not status.f_files:  # A file system that creates inodes on demand.
        return
    words = f"{path}: {status.f_favail} of {status.f_files} inodes are free"
    if status.f_favail < max(_FEW_INODES, status.f_files // 20):
        advice = (
            f"remove files, or create the file system with more inodes: a segment has about {_FILES_OF_A_LOG} files"
        )
        yield Finding(WARN if status.f_favail else FAIL, "inodes", words, advice)
    else:
        yield Finding(OK, "inodes", words)
