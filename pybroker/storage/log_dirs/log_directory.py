"""One log directory: its lock, its identity, its clean-shutdown file.

Owns the files at the root of the directory other than checkpoints. The lock is a POSIX record lock on `.lock`, as
Kafka takes it, so that a Kafka and a pybroker exclude each other too; the file holds the pid of its holder for
`pybroker stop`. Must not know partitions.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path

from pybroker.storage.errors import (
    DirectoryError,
    DirectoryFailedError,
    DirectoryLockedError,
    ForeignDirectoryError,
)
from pybroker.storage.exhaustion import is_exhaustion, limits
from pybroker.storage.log_dirs.atomic_file import named, replace_file, sync_directory
from pybroker.storage.log_dirs.meta_properties import (
    FILE_NAME,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)

LOCK_NAME = ".lock"
CLEAN_SHUTDOWN_NAME = ".kafka_cleanshutdown"
NO_BROKER_EPOCH = -1
_LARGEST_EPOCH = 2**63 - 1

# Files that a directory may contain before a broker has formatted it.
_IGNORED = frozenset({LOCK_NAME, "lost+found", FILE_NAME + ".tmp"})

# Errors of a disk that is not reliable any more, on whatever file.
_DISK_FAILED = frozenset(
    {errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.EUCLEAN}
)

# POSIX locks do not exclude users within one process; this set does. Invariant: real paths locked by this process.
_locked_here: set[str] = set()


class LogDirectory:
    """A directory that this node has locked, or that failed before. `meta` is None until it is formatted."""

    def __init__(self, path: Path, meta: MetaProperties | None, lock: int | None, created: bool) -> None:
        self.path = path
        self.meta = meta
        self.offline = lock is None
        self._lock = lock
        self._created = created

    @classmethod
    def failed(cls, path: Path) -> LogDirectory:
        """Return a directory that cannot be used: offline from the start."""
        return cls(path, None, None, created=False)

    @classmethod
    def acquire(cls, path: Path) -> LogDirectory:
        """Create the directory if needed, lock it, read its identity; raises DirectoryError, changing nothing then."""
        created = not path.exists()
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = _lock(path)
        except (NotADirectoryError, FileExistsError):
            raise DirectoryFailedError(f"log directory {path}: expected a directory, found a file") from None
        except OSError as error:
            if created and path.is_dir():
                path.rmdir()
            _refuse_exhaustion(path, error)
            raise DirectoryFailedError(f"log directory {path} cannot be used: {_cause(path, error)}") from None
        directory = cls(path, None, lock, created)
        try:
            directory.meta = read_meta_properties(path)
            if directory.meta is None:
                _refuse_unknown_content(path)
        except (OSError, DirectoryError) as error:
            directory.release()
            if isinstance(error, DirectoryError):
                raise
            _refuse_exhaustion(path, error)
            raise DirectoryFailedError(f"log directory {path} cannot be read: {_cause(path, error)}") from None
        return directory

    def format(self, meta: MetaProperties) -> None:
        """Write the identity `meta` into the empty directory; raises DirectoryError."""
        try:
            write_meta_properties(self.path, meta)
        except OSError as error:
            raise DirectoryFailedError(
                f"log directory {self.path} cannot be written: {_cause(self.path, error)}"
            ) from None
        self.meta = meta

    @property
    def was_left_cleanly(self) -> bool:
        """Whether the last stop was clean, and `take_clean_shutdown` was not called since."""
        return (self.path / CLEAN_SHUTDOWN_NAME).exists()

    def last_broker_epoch(self) -> int:
        """Return the broker epoch of the last clean stop, -1 if there is none, or the file cannot be parsed."""
        try:
            reported = json.loads((self.path / CLEAN_SHUTDOWN_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return NO_BROKER_EPOCH
        epoch = reported.get("brokerEpoch") if isinstance(reported, dict) else None
        return epoch if type(epoch) is int and 0 <= epoch <= _LARGEST_EPOCH else NO_BROKER_EPOCH

    def take_clean_shutdown(self) -> bool:
        """Return whether the last stop was clean, and remove the file: from here on only a new clean stop counts."""
        path = self.path / CLEAN_SHUTDOWN_NAME
        clean = path.exists()
        if clean:
            path.unlink()
            # Without the sync, the file could reappear after a power failure, and wrongly prove a clean stop.
            sync_directory(self.path)
        return clean

    def check(self) -> None:
        """Check that the directory still exists; raises OSError."""
        (self.path / FILE_NAME).stat()

    def has_failed(self, error: OSError) -> bool:
        """Return whether an error in this directory means that the whole directory has failed.

        A lack of descriptors or memory is no failure of a disk.
        """
        if is_exhaustion(error):
            return False
        if error.errno in _DISK_FAILED:
            return True
        try:
            self.check()
        except OSError:
            return True
        return False

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        """Record that every log was flushed and closed; raises OSError."""
        replace_file(self.path / CLEAN_SHUTDOWN_NAME, f'{{"version": 0, "brokerEpoch": {broker_epoch}}}')

    def release(self) -> None:
        """Release the lock. Removes a directory that was created here and never formatted."""
        if self._lock is None:
            return
        if self.meta is None:
            (self.path / LOCK_NAME).unlink(missing_ok=True)
        _locked_here.discard(os.path.realpath(self.path))
        os.close(self._lock)
        if self.meta is None and self._created and not any(self.path.iterdir()):
            self.path.rmdir()


def holder_of(path: Path) -> int | None:
    """Return the pid of the process that has locked the directory, None if it is not locked; raises OSError."""
    try:
        file = os.open(path / LOCK_NAME, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return pid_in(file)
    finally:
        os.close(file)
    return None


def is_locked_here(path: Path) -> bool:
    """Return whether this process holds the directory's lock."""
    return os.path.realpath(path) in _locked_here


def _lock(path: Path) -> int:
    real = os.path.realpath(path)
    if real in _locked_here:
        raise DirectoryLockedError(path, os.getpid())
    file = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = pid_in(file)
        os.close(file)
        raise DirectoryLockedError(path, pid) from None
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        (path / LOCK_NAME).unlink()
        os.close(file)
        raise named(error, path / LOCK_NAME) from None
    _locked_here.add(real)
    return file


def pid_in(file: int) -> int | None:
    """Return the pid in an open lock file, None if it contains none."""
    text = os.pread(file, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _cause(path: Path, error: OSError) -> str:
    """Return why a log directory cannot be used, with the name of the file that caused the error."""
    if error.filename in (None, str(path), path):
        return str(error.strerror)
    return f"{error.filename}: {error.strerror}"


def _refuse_exhaustion(path: Path, error: OSError) -> None:
    """Raise DirectoryError if the process lacks a resource: the directory itself must not go offline."""
    if is_exhaustion(error):
        raise DirectoryError(f"log directory {path} cannot be opened: {error.strerror}; {limits()}") from None


def _refuse_unknown_content(path: Path) -> None:
    unknown = sorted(entry.name for entry in path.iterdir() if entry.name not in _IGNORED)
    if unknown:
        raise ForeignDirectoryError(
            f"log directory {path} has no {FILE_NAME} but contains {unknown[0]}: "
            "expected an empty directory or one that a broker formatted"
        )
