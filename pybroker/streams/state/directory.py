"""The state directory of an application on one machine: its process id, its task directories and their locks.

The layout is Kafka's: `<state.dir>/<application.id>/<task id>/rocksdb/<store>`. Must not know stores or tasks.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from uuid import UUID, uuid4

import msgspec

from pybroker.streams.errors import DirectoryLockedError, StreamsError
from pybroker.streams.state.rocks import read_committed_offset
from pybroker.streams.state.store_maps import ROCKSDB

LOCK = ".lock"
PROCESS_FILE = "kafka-streams-process-metadata"
GLOBAL_TASK = "global"
"""The name of the directory of global stores."""


class _Process(msgspec.Struct, rename="camel"):
    """The content of the process file (`StateDirectory.StateDirectoryProcessFile`)."""

    process_id: UUID
    version: int = 1


def default_state_dir() -> Path:
    """Return the default of `state.dir`: `kafka-streams` in the directory of temporary files."""
    return Path(tempfile.gettempdir()) / "kafka-streams"


class StateDirectory:
    """Owns `<state.dir>/<application.id>` from its construction to `close`: no other process and no other object can.

    Locks are those of `flock`, which the system releases when a process ends. They also exclude other threads of the
    same process, because each lock has an open file of its own.
    """

    def __init__(self, state_dir: Path, application_id: str) -> None:
        """Create and lock the directory.

        Raises:
            DirectoryLockedError: another instance uses the directory.
            StreamsError: the directory cannot be created.
        """
        self.path = state_dir / application_id
        self._locks: dict[Path, int] = {}
        self._lock(self.path)
        try:
            self.process_id = self._read_process_id()
            """The id of this instance in its streams group. A restart has the same id."""
        except BaseException:
            self.close()
            raise

    def lock(self, task_id: str) -> Path:
        """Create and lock the directory of a task, and return its path.

        Raises:
            DirectoryLockedError: another thread or process uses the directory. The caller can retry.
            StreamsError: the directory cannot be created.
        """
        path = self.path / task_id
        self._lock(path)
        return path

    def unlock(self, task_id: str) -> None:
        """Release the lock of a task, if this object has it."""
        self._unlock(self.path / task_id)

    def task_ids(self) -> list[str]:
        """Return the ids of all tasks that have a directory, without the global task, in order."""
        found = [entry.name for entry in self.path.iterdir() if entry.is_dir() and entry.name != GLOBAL_TASK]
        return sorted(found, key=lambda name: tuple(int(part) if part.isdecimal() else -1 for part in name.split("_")))

    def committed_offsets(self, task_id: str) -> dict[str, int]:
        """Return the committed changelog offset of each store of a task that no thread has open.

        Stores without a commit are left out.

        Raises:
            TaskCorruptedError: a database is damaged.
            StreamsError: a database cannot be read, or RocksDB is not installed.
        """
        databases = self.path / task_id / ROCKSDB
        names = sorted(entry.name for entry in databases.iterdir()) if databases.is_dir() else []
        offsets = {name: read_committed_offset(databases / name) for name in names}
        return {name: offset for name, offset in offsets.items() if offset is not None}

    def wipe(self, task_id: str) -> None:
        """Delete the databases of a task, so that its stores are restored from the start of their changelogs.

        The lock of the task stays.

        Raises:
            StreamsError: the databases cannot be deleted.
        """
        _delete(self.path / task_id / ROCKSDB)

    def remove_obsolete(self, now_ms: int, delay_ms: int) -> list[str]:
        """Delete the directories of unlocked tasks that have not changed for a delay (`state.cleanup.delay.ms`).

        Args:
            now_ms: the time, in milliseconds since the epoch.
            delay_ms: the least age of the last change, in milliseconds.

        Returns:
            The ids of the tasks with a deleted directory.

        Raises:
            StreamsError: a directory cannot be deleted.
        """
        removed = []
        for task_id in self.task_ids():
            path = self.path / task_id
            if path in self._locks or now_ms - _last_change_ms(path) < delay_ms:
                continue
            try:
                self._lock(path)
            except DirectoryLockedError:
                continue
            try:
                _delete(path)
            finally:
                self._unlock(path)
            removed.append(task_id)
        return removed

    def clean(self) -> None:
        """Delete the directories of all tasks (`KafkaStreams.cleanUp`). The process id stays.

        Raises:
            DirectoryLockedError: a task is running.
            StreamsError: a directory cannot be deleted.
        """
        for path in sorted(entry for entry in self.path.iterdir() if entry.is_dir()):
            self._lock(path)
            try:
                _delete(path)
            finally:
                self._unlock(path)

    def close(self) -> None:
        """Release all locks."""
        for path in list(self._locks):
            self._unlock(path)

    def _read_process_id(self) -> UUID:
        path = self.path / PROCESS_FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=_Process).process_id
        except (OSError, msgspec.DecodeError):
            # The file does not exist yet, or a machine that failed has left a part of it. Kafka takes a new id too.
            process = _Process(uuid4())
        try:
            written = path.with_suffix(".tmp")
            written.write_bytes(msgspec.json.encode(process))
            written.replace(path)
        except OSError as error:
            raise _cannot("write", path, error) from error
        return process.process_id

    def _lock(self, directory: Path) -> None:
        if directory in self._locks:
            raise _locked(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _cannot("create", directory, error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise _locked(directory) from None
        except OSError as error:
            os.close(file)
            raise _cannot("lock", directory, error) from error
        self._locks[directory] = file

    def _unlock(self, directory: Path) -> None:
        file = self._locks.pop(directory, None)
        if file is not None:
            os.close(file)


def _last_change_ms(task: Path) -> int:
    """Return when something in the directory of a task has changed, in milliseconds since the epoch."""
    paths = [task, task / ROCKSDB, *(task / ROCKSDB).glob("*")]
    return max((int(path.stat().st_mtime * 1000) for path in paths if path.exists()), default=0)


def _delete(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _cannot("delete", path, error) from error


def _locked(directory: Path) -> DirectoryLockedError:
    return DirectoryLockedError(
        f"state directory {directory} is locked: another instance or thread of the application uses it. Stop it, or "
        "set another state.dir"
    )


def _cannot(verb: str, path: Path, error: OSError) -> StreamsError:
    reason = error.strerror or str(error)
    return StreamsError(f"cannot {verb} {path}: {reason}: check state.dir, its permissions and the space of its disk")
