"""The RocksDB database of one store, with transactional writes, by the package `rocksdict`.

Owns the import of that package, the keys of the database, and the conversion of its errors. Must not know what the
keys of a store mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from pybroker.config.extras import install_command
from pybroker.streams.errors import ProcessorStateError, StreamsError, TaskCorruptedError
from pybroker.streams.state.ordered_map import increment
from pybroker.streams.state.sorted_map import SortedMap

if TYPE_CHECKING:
    from collections.abc import Generator

    import rocksdict

KIND_KEY = b"\x00kind"
NUMBERS_KEY = b"\x00numbers"
OFFSET_KEY = b"\x00offset"
METADATA_KEYS = 3
FORMAT = "1"
"""The format of keys and values of all stores. A database of another format is rejected."""
NUMBERS = struct.Struct(">qqq")
OFFSET = struct.Struct(">q")

# The settings of Kafka's RocksDBStore.
WRITE_BUFFER_BYTES = 16 << 20
WRITE_BUFFERS = 3
BLOCK_CACHE_BYTES = 50 << 20
BLOCK_BYTES = 4096
BLOOM_BITS_PER_KEY = 10
LOG_FILES = 2

PROPERTIES = (
    "num-entries-active-mem-table",
    "num-deletes-active-mem-table",
    "num-entries-imm-mem-tables",
    "num-deletes-imm-mem-tables",
    "num-immutable-mem-table",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "size-all-mem-tables",
    "mem-table-flush-pending",
    "num-running-flushes",
    "compaction-pending",
    "num-running-compactions",
    "estimate-pending-compaction-bytes",
    "total-sst-files-size",
    "live-sst-files-size",
    "num-live-versions",
    "block-cache-capacity",
    "block-cache-usage",
    "block-cache-pinned-usage",
    "estimate-num-keys",
    "estimate-table-readers-mem",
    "background-errors",
)
"""The properties that Kafka reports as metrics of a store (`RocksDBMetrics`)."""

ENTRY_BYTES = 160
"""The approximate memory of one uncommitted entry in addition to its key and value: dict, list and object headers."""


class Deletion(Enum):
    """The uncommitted value of a removed key."""

    DELETED = 0


DELETED = Deletion.DELETED
Written = bytes | Deletion


class StoreNumbers:
    """Numbers of a store that its rows do not contain. A commit writes them with the rows.

    An expired or deleted row also advances them, so they cannot be computed from the rows that are left.
    """

    __slots__ = ("logged_sequence", "sequence", "stream_time")

    def __init__(self) -> None:
        self.stream_time = -1
        """The largest timestamp that the store has seen, in milliseconds."""
        self.sequence = 0
        """The sequence number of the last row, in a store that retains duplicates."""
        self.logged_sequence = 0
        """The sequence number of the last changelog record, in a store that retains duplicates."""

    def pack(self) -> bytes:
        """Return the bytes of the numbers."""
        return NUMBERS.pack(self.stream_time, self.sequence, self.logged_sequence)

    def unpack(self, data: bytes) -> None:
        """Set the numbers from their bytes."""
        self.stream_time, self.sequence, self.logged_sequence = NUMBERS.unpack(data)


def check_installed(stores: Iterable[str]) -> None:
    """Check that persistent stores can be opened.

    Args:
        stores: the names of the persistent stores of a topology.

    Raises:
        StreamsError: there is a persistent store, and the package of the extra `streams` is missing.
    """
    name = next(iter(stores), None)
    if name is not None and find_spec("rocksdict") is None:
        raise StreamsError(
            f"store {name!r} is persistent, and the package of the extra pybroker[streams] is missing: run "
            f"{install_command('streams')}, or keep the stores in memory by default.dsl.store=in_memory"
        )


class RocksDatabase:
    """The database of one store. Changes stay in memory until a commit (the idea of KIP-892 and KIP-1035).

    A commit writes all changes and the changelog offset in one batch, so a killed process leaves the exact state of its
    last commit. The batch is in the write-ahead log before `commit` returns, without fsync. A killed process therefore
    loses no commit. A machine that fails can lose the latest commits, but never a part of a commit: RocksDB recovers
    the write-ahead log up to the first incomplete batch.
    """

    def __init__(self, path: Path, store: str, layout: str, numbers: StoreNumbers) -> None:
        """Open or create the database, and read the numbers of the store.

        Raises:
            TaskCorruptedError: the database is damaged.
            ProcessorStateError: the database cannot be opened, or it has the layout of another store.
        """
        self.path = path
        self.store = store
        self.changes: SortedMap[Written] = SortedMap()
        """The changes since the last commit."""
        self.cleared: set[bytes] = set()
        """The prefixes of maps that have been cleared since the last commit. The database still has their keys."""
        self.commits = 0
        """The number of commits. An iterator that sees this number change reads values again."""
        self.uncommitted_bytes = 0
        self._numbers = numbers
        self._iterators: WeakSet[Generator[tuple[bytes, bytes], None, None]] = WeakSet()
        check_installed([store])
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ProcessorStateError(
                f"store {store!r} cannot create {path}: {error.strerror}: check state.dir and its permissions"
            ) from error
        self._rdict = _opened(path, store)
        try:
            self._check_layout(f"{FORMAT} {layout}".encode())
            packed = self.read(NUMBERS_KEY)
            if packed is not None:
                self._numbers.unpack(packed)
            offset = self.read(OFFSET_KEY)
        except BaseException:
            self._rdict.close()
            raise
        self._written_numbers = packed
        self.committed_offset: int | None = None if offset is None else OFFSET.unpack(offset)[0]

    def _check_layout(self, layout: bytes) -> None:
        found = self.read(KIND_KEY)
        if found is None:
            if self.first(b"") is not None:
                raise _damaged(self.store, self.path, "the type of the store is missing")
            try:
                self._rdict.put(KIND_KEY, layout)
            except Exception as error:
                raise _failure(error, self.store, self.path) from error
        elif found != layout:
            raise ProcessorStateError(
                f"store {self.store!r} has changed: {self.path} contains {found.decode(errors='replace')!r}, the "
                f"topology needs {layout.decode()!r}. Delete the directory to restore the store from its changelog, or "
                "choose another name for the new store"
            )

    # Reads of the database, without the changes.

    def read(self, key: bytes) -> bytes | None:
        """Return the committed value of a key, or None."""
        try:
            value: bytes | None = self._rdict.get(key)
        except Exception as error:
            raise _failure(error, self.store, self.path) from error
        return value

    def property_values(self) -> dict[str, float]:
        """Return the properties of the database by their names without `rocksdb.`."""
        try:
            values = {name: self._rdict.property_int_value(f"rocksdb.{name}") for name in PROPERTIES}
        except Exception as error:
            raise _failure(error, self.store, self.path) from error
        return {name: float(value) for name, value in values.items() if value is not None}

    def scan(self, start: bytes, forward: bool) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator over the committed rows of now from a key on. A backward scan begins at or before it."""
        try:
            return self._rdict.items(backwards=not forward, from_key=start)  # type: ignore[return-value] # raw mode
        except Exception as error:
            raise _failure(error, self.store, self.path) from error

    def advance(self, rows: Iterator[tuple[bytes, bytes]]) -> tuple[bytes, bytes] | None:
        """Return the next row of a scan, or None."""
        try:
            return next(rows, None)
        except Exception as error:
            raise _failure(error, self.store, self.path) from error

    def first(self, key: bytes) -> bytes | None:
        """Return the smallest committed key that is not smaller than `key`, or None."""
        row = self.advance(self.scan(key, True))
        return None if row is None else row[0]

    def prefixes(self, start: bytes, length: int) -> list[bytes]:
        """Return the prefixes of a length that begin with `start` and that have committed keys. Seeks once for each."""
        found = []
        seek: bytes | None = start
        while seek is not None and (key := self.first(seek)) is not None and key.startswith(start):
            found.append(key[:length])
            seek = increment(key[:length])
        return found

    @property
    def approximate_keys(self) -> int:
        """The approximate number of keys, with the changes since the last commit."""
        stored = self._rdict.property_int_value("rocksdb.estimate-num-keys") or 0
        return max(0, stored - METADATA_KEYS) + self.changes.approximate_size

    # Changes.

    def write(self, key: bytes, value: Written) -> None:
        """Set or remove a key in the changes."""
        changes = self.changes
        before = changes.get(key)
        changes.put(key, value)
        size = 0 if value is DELETED else len(value)
        if before is None:
            self.uncommitted_bytes += len(key) + size + ENTRY_BYTES
        else:
            self.uncommitted_bytes += size - (0 if before is DELETED else len(before))

    def clear(self, prefix: bytes) -> None:
        """Remove all keys with a prefix: the commit deletes their range in the database."""
        for key in self.changes.keys(prefix, increment(prefix), False):
            value = self.changes.remove(key)
            self.uncommitted_bytes -= len(key) + ENTRY_BYTES + (len(value) if isinstance(value, bytes) else 0)
        self.cleared.add(prefix)

    def commit(self, changelog_offset: int | None) -> None:
        """Write all changes and the changelog offset in one batch. None keeps the offset of the last commit.

        Raises:
            ProcessorStateError: the batch cannot be written. The changes stay uncommitted.
            TaskCorruptedError: the database is damaged.
        """
        import rocksdict  # of the extra `streams`, which may be missing

        batch = rocksdict.WriteBatch(raw_mode=True)
        for prefix in self.cleared:
            batch.delete_range(prefix, increment(prefix) or b"")
        put, delete = batch.put, batch.delete
        for key, value in self.changes.items():
            if value is DELETED:
                delete(key)
            else:
                put(key, value)
        numbers = self._numbers.pack()
        if numbers != self._written_numbers:
            put(NUMBERS_KEY, numbers)
        if changelog_offset is not None and changelog_offset != self.committed_offset:
            put(OFFSET_KEY, OFFSET.pack(changelog_offset))
        if batch.is_empty():
            return
        try:
            self._rdict.write(batch)
        except Exception as error:
            raise _failure(error, self.store, self.path) from error
        self._written_numbers = numbers
        if changelog_offset is not None:
            self.committed_offset = changelog_offset
        self.changes.clear()
        self.cleared.clear()
        self.uncommitted_bytes = 0
        self.commits += 1

    def track(self, rows: Generator[tuple[bytes, bytes], None, None]) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator that `close` ends. A live iterator of RocksDB would keep the database locked."""
        self._iterators.add(rows)
        return rows

    def close(self) -> None:
        """End all iterators and close the database. Changes since the last commit are lost."""
        for rows in list(self._iterators):
            rows.close()
        self.changes.clear()
        self._rdict.close()


def read_committed_offset(path: Path) -> int | None:
    """Return the changelog offset of the last commit in a database that no process has open; None if it has none.

    Raises:
        TaskCorruptedError: the database is damaged.
        ProcessorStateError: the database cannot be read.
        StreamsError: the package of the extra `streams` is missing.
    """
    check_installed([path.name])
    rdict = _opened(path, path.name, read_only=True)
    try:
        offset = rdict.get(OFFSET_KEY)
    except Exception as error:
        raise _failure(error, path.name, path) from error
    finally:
        rdict.close()
    return None if offset is None else OFFSET.unpack(offset)[0]


def _opened(path: Path, store: str, read_only: bool = False) -> rocksdict.Rdict:
    """Return the open database, with the settings of Kafka's RocksDBStore."""
    import rocksdict  # of the extra `streams`, which may be missing

    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(not read_only)
    table = rocksdict.BlockBasedOptions()
    table.set_block_cache(rocksdict.Cache(BLOCK_CACHE_BYTES))
    table.set_block_size(BLOCK_BYTES)
    table.set_bloom_filter(BLOOM_BITS_PER_KEY, False)
    options.set_block_based_table_factory(table)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    options.set_compaction_style(rocksdict.DBCompactionStyle.universal())
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(WRITE_BUFFERS)
    options.set_keep_log_file_num(LOG_FILES)
    options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.point_in_time())
    access = rocksdict.AccessType.read_only() if read_only else rocksdict.AccessType.read_write()
    try:
        return rocksdict.Rdict(str(path), options, access_type=access)
    except Exception as error:
        raise _failure(error, store, path) from error


def _damaged(store: str, path: Path, reason: str) -> TaskCorruptedError:
    """Return the error of a damaged database at `<task id>/rocksdb/<store>`."""
    return TaskCorruptedError(
        f"the database of store {store!r} at {path} is damaged: {reason}", path.parent.parent.name
    )


def _failure(error: Exception, store: str, path: Path) -> StreamsError:
    """Return the error of an exception of rocksdict.

    All errors of RocksDB have one class in rocksdict. Their text begins with RocksDB's status, which decides here.
    """
    text = " ".join(str(error).split())
    # A file that the manifest lists does not exist.
    if text.startswith("Corruption") or (text.startswith("IO error") and "No such file or directory" in text):
        return _damaged(store, path, text)
    if "LOCK" in text:
        return ProcessorStateError(
            f"store {store!r} cannot open {path}: {text}. Another instance uses this directory: stop it, or set "
            "another state.dir"
        )
    return ProcessorStateError(f"store {store!r} cannot use {path}: {text}: check the disk and the permissions")
