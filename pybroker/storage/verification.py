"""Checks a stopped broker's directories without changing them: every log, index, checkpoint and small file.

Owns the comparisons, and the definition of damage; the native `verify_log` reads the batches. Opens nothing for
writing. Must not know options or output. A shared lock on each directory keeps brokers from starting meanwhile.
"""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pybroker.storage.errors import CorruptCheckpointError, DirectoryError, DirectoryLockedError
from pybroker.storage.log_dirs.checkpoint import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    read_checkpoint,
)
from pybroker.storage.log_dirs.log_directory import CLEAN_SHUTDOWN_NAME, LOCK_NAME, is_locked_here, pid_in
from pybroker.storage.log_dirs.meta_properties import FILE_NAME, read_meta_properties
from pybroker.storage.log_dirs.partition_directory import METADATA_DIRECTORY, is_deleted, parse_future_name, parse_name
from pybroker.storage.native import verify_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pybroker.storage.log_dirs.meta_properties import MetaProperties
    from pybroker.storage.native import VerifiedLog

DAMAGE, UNREADABLE, NOTE = "damage", "unreadable", "note"
"""Severity of a finding: damage or loss; a check that was not possible; a hint, or a flaw that a start repairs."""

_MOST_THREADS = 4
_WRITTEN_AT_STOP = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS)

Key = tuple[str, int]


class Finding(msgspec.Struct, frozen=True):
    """A problem, or a hint."""

    path: Path
    severity: str
    kind: str
    text: str


class Verification(msgspec.Struct, frozen=True):
    """All findings, and the amount of data checked."""

    findings: list[Finding]
    logs: int
    segments: int
    batches: int
    bytes: int

    @property
    def damaged(self) -> bool:
        """Whether there is any damage or loss."""
        return any(finding.severity == DAMAGE for finding in self.findings)

    @property
    def complete(self) -> bool:
        """Whether every check was possible."""
        return all(finding.severity != UNREADABLE for finding in self.findings)


class _Checkpoints(msgspec.Struct, frozen=True):
    """The contents of one directory's checkpoint files; None for a file that is missing or unreadable."""

    points: Mapping[Key, int] | None
    watermarks: Mapping[Key, int] | None
    starts: Mapping[Key, int] | None
    cleaned: Mapping[Key, int] | None


class _Log(msgspec.Struct, frozen=True):
    """A log to check."""

    path: Path
    key: Key | None  # None: the metadata log
    clean: bool
    checkpoints: _Checkpoints


def verify_directories(log_paths: Sequence[Path], metadata_path: Path) -> Verification:
    """Check the log directories of a stopped broker and its metadata log.

    Raises `DirectoryError` if a directory is missing or locked by a broker, and `OSError` if one cannot be read.
    """
    paths = list(dict.fromkeys((*log_paths, metadata_path)))
    findings: list[Finding] = []
    with ExitStack() as stack:
        for path in paths:
            stack.enter_context(_shared_lock(path))
        _check_identities(paths, findings)
        logs = [log for path in log_paths for log in _find_logs(path, findings)]
        clean = any((path / CLEAN_SHUTDOWN_NAME).exists() for path in log_paths)
        metadata = metadata_path / METADATA_DIRECTORY
        if metadata.is_dir():
            logs.append(_Log(metadata, None, clean, _Checkpoints(None, None, None, None)))
        elif logs or clean:
            findings.append(Finding(metadata, DAMAGE, "metadata", "is missing: the broker does not start without it"))
        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
            verified = list(threads.map(_verify, logs))
    for log, (found, result) in zip(logs, verified, strict=True):
        findings.extend(found)
        if log.key is None and result is not None and result.log_end_offset == 0 and len(logs) > 1:
            findings.append(Finding(log.path, DAMAGE, "metadata", "is empty: the broker does not start with it"))
    results = [result for _, result in verified if result is not None]
    return Verification(
        findings,
        logs=len(logs),
        segments=sum(result.segments for result in results),
        batches=sum(result.batches for result in results),
        bytes=sum(result.bytes for result in results),
    )


@contextmanager
def _shared_lock(path: Path) -> Iterator[None]:
    """Keep brokers from starting in the directory; raises DirectoryError if one has locked it."""
    if not path.is_dir():
        raise DirectoryError(f"log directory {path}: the directory does not exist")
    if is_locked_here(path):
        # Opening and closing the lock file here would release this process's lock.
        raise DirectoryLockedError(path, os.getpid())
    try:
        file = os.open(path / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DirectoryLockedError(path, pid_in(file)) from None
        yield
    finally:
        os.close(file)


def _check_identities(paths: Sequence[Path], findings: list[Finding]) -> None:
    first: tuple[Path, MetaProperties] | None = None
    for path in paths:
        file = path / FILE_NAME
        try:
            meta = read_meta_properties(path)
        except (DirectoryError, ValueError) as error:
            findings.append(Finding(file, DAMAGE, "identity", str(error).removeprefix(f"{file}: ")))
            continue
        except OSError as error:
            findings.append(Finding(file, UNREADABLE, "identity", f"cannot be read: {error.strerror}"))
            continue
        if meta is None:
            findings.append(Finding(file, DAMAGE, "identity", "is missing: the broker does not start here"))
        elif first is None:
            first = path, meta
        elif (meta.cluster_id, meta.node_id) != (first[1].cluster_id, first[1].node_id):
            text = (
                f"is of node {meta.node_id} of cluster {meta.cluster_id}, and {first[0]} of node {first[1].node_id} "
                f"of cluster {first[1].cluster_id}"
            )
            findings.append(Finding(file, DAMAGE, "identity", text))


def _find_logs(path: Path, findings: list[Finding]) -> list[_Log]:
    """Return the partitions' logs in a directory; adds findings about other entries."""
    clean = (path / CLEAN_SHUTDOWN_NAME).exists()
    checkpoints = _Checkpoints(
        _read(path / RECOVERY_POINTS, clean, findings),
        _read(path / HIGH_WATERMARKS, clean, findings),
        _read(path / LOG_STARTS, clean, findings),
        _read(path / CLEANED_OFFSETS, clean, findings),
    )
    logs = []
    for entry in sorted(path.iterdir()):
        key = parse_name(entry.name)
        if key is not None and entry.is_dir():
            logs.append(_Log(entry, key, clean, checkpoints))
        elif entry.name.endswith("-stray"):
            findings.append(Finding(entry, NOTE, "stray", "belonged to no topic at a start, and is not served"))
        elif is_deleted(entry.name) or parse_future_name(entry.name) is not None:
            findings.append(Finding(entry, NOTE, "leftover", "was being removed or copied; the next start sees to it"))
    here = {log.key for log in logs}
    for (topic, index), offset in (checkpoints.points or {}).items():
        if offset > 0 and (topic, index) not in here:
            text = f"is missing, and {RECOVERY_POINTS} says {offset}: its records are gone"
            findings.append(Finding(path / f"{topic}-{index}", DAMAGE, "records", text))
    return logs


def _read(path: Path, clean: bool, findings: list[Finding]) -> Mapping[Key, int] | None:
    try:
        if not path.exists():
            if clean and path.name in _WRITTEN_AT_STOP:
                findings.append(Finding(path, DAMAGE, "checkpoint", "is missing, and a clean stop writes it"))
            return None
        return read_checkpoint(path)
    except CorruptCheckpointError as error:
        findings.append(Finding(path, DAMAGE, "checkpoint", str(error).removeprefix(f"checkpoint file {path}, ")))
    except OSError as error:
        findings.append(Finding(path, UNREADABLE, "checkpoint", f"cannot be read: {error.strerror}"))
    return None


def _verify(log: _Log) -> tuple[list[Finding], VerifiedLog | None]:
    def reported(offsets: Mapping[Key, int] | None, unlisted: int) -> int:
        return -1 if offsets is None or log.key is None else offsets.get(log.key, unlisted)

    try:
        result = verify_log(
            str(log.path),
            clean_shutdown=log.clean,
            recovery_point=reported(log.checkpoints.points, -1),
            log_start_offset=reported(log.checkpoints.starts, 0),
            high_watermark=max(0, reported(log.checkpoints.watermarks, 0)),
            compacted_to=max(0, reported(log.checkpoints.cleaned, 0)),
            is_partition=log.key is not None,
        )
    except OSError as error:
        return [Finding(log.path, UNREADABLE, "records", f"cannot be read: {error.strerror}")], None
    findings = [Finding(log.path / name, severity, kind, text) for name, severity, kind, text in result.findings]
    if result.left_out:
        findings.append(Finding(log.path, DAMAGE, "records", f"{result.left_out} more findings are not listed"))
    if result.set_aside:
        size = sum(size for _, size in result.set_aside)
        text = f"holds {len(result.set_aside)} files of {size} bytes that recoveries have set aside"
        findings.append(Finding(log.path, NOTE, "set-aside", text))
    return findings, result
