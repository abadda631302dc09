from __future__ import annotations

import os
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from pybroker.streams.errors import ProcessorStateError, StreamsError, TaskCorruptedError
from pybroker.streams.state import rocks
from pybroker.streams.state.rocks import RocksDatabase, StoreNumbers, check_installed, read_committed_offset
from tests.support.repository import ROOT


def opened(path: Path, layout: str = "key-value") -> RocksDatabase:
    return RocksDatabase(path, "counts", layout, StoreNumbers())


def committed(path: Path) -> None:
    """Leave a database with one row, in a file of its own, and offset 7."""
    database = opened(path)
    database.write(b"\x01k", b"v")
    database.commit(7)
    database.close()


def test_new_database_has_no_offset_and_a_commit_sets_it(tmp_path: Path) -> None:
    database = opened(tmp_path / "db")
    assert database.committed_offset is None
    database.write(b"\x01k", b"v")
    database.commit(None)
    assert database.committed_offset is None
    database.commit(12)
    database.close()
    database = opened(tmp_path / "db")
    assert (database.committed_offset, database.read(b"\x01k")) == (12, b"v")
    database.close()
    assert read_committed_offset(tmp_path / "db") == 12


def test_changes_without_a_commit_are_lost(tmp_path: Path) -> None:
    committed(tmp_path / "db")
    database = opened(tmp_path / "db")
    database.write(b"\x01k", b"later")
    database.clear(b"\x01")
    database.close()
    database = opened(tmp_path / "db")
    assert database.read(b"\x01k") == b"v"
    database.close()


def test_uncommitted_bytes_count_each_key_once(tmp_path: Path) -> None:
    database = opened(tmp_path / "db")
    database.write(b"\x01k", b"value")
    size = database.uncommitted_bytes
    for _ in range(100):
        database.write(b"\x01k", b"value")
    assert database.uncommitted_bytes == size
    database.write(b"\x01k", b"v")
    assert database.uncommitted_bytes == size - 4
    database.write(b"\x01k", rocks.DELETED)
    assert database.uncommitted_bytes == size - 5
    database.clear(b"\x01")
    assert database.uncommitted_bytes == 0
    database.close()


def test_numbers_of_the_store_are_committed_with_its_rows(tmp_path: Path) -> None:
    numbers = StoreNumbers()
    database = RocksDatabase(tmp_path / "db", "counts", "window", numbers)
    numbers.stream_time, numbers.sequence, numbers.logged_sequence = 50, 3, 4
    database.commit(1)
    numbers.stream_time = 60
    database.close()
    found = StoreNumbers()
    RocksDatabase(tmp_path / "db", "counts", "window", found).close()
    assert (found.stream_time, found.sequence, found.logged_sequence) == (50, 3, 4)


def test_another_layout_is_rejected_before_data_is_read(tmp_path: Path) -> None:
    committed(tmp_path / "db")
    with pytest.raises(ProcessorStateError, match=r"store 'counts' has changed: .*'1 key-value'.* needs '1 window'"):
        opened(tmp_path / "db", "window")
    opened(tmp_path / "db").close()


def test_close_ends_iterators_so_that_the_database_can_be_opened_again(tmp_path: Path) -> None:
    committed(tmp_path / "db")
    database = opened(tmp_path / "db")

    def rows():  # type: ignore[no-untyped-def]
        yield from database.scan(b"", True)

    tracked = database.track(rows())
    next(tracked)
    database.close()
    opened(tmp_path / "db").close()
    assert next(tracked, None) is None


def test_open_database_is_locked(tmp_path: Path) -> None:
    database = opened(tmp_path / "db")
    with pytest.raises(ProcessorStateError, match="Another instance uses this directory"):
        opened(tmp_path / "db")
    database.close()


def test_directory_that_cannot_be_created_names_path_and_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProcessorStateError, match=r"store 'counts' cannot create .*/file/db: Not a directory: check"):
        opened(tmp_path / "file" / "db")


@pytest.mark.parametrize("damage", ["truncated", "magic", "missing", "current", "manifest"])
def test_damaged_database_names_store_and_path(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "0_1" / "rocksdb" / "counts"
    committed(path)
    (table,) = path.glob("*.sst")
    if damage == "truncated":
        os.truncate(table, table.stat().st_size // 2)
    elif damage == "magic":
        table.write_bytes(table.read_bytes()[:-8] + b"XXXXXXXX")
    elif damage == "missing":
        table.unlink()
    elif damage == "current":
        (path / "CURRENT").write_text("MANIFEST-999999\n")
    else:
        (manifest,) = path.glob("MANIFEST-*")
        os.truncate(manifest, 10)
    with pytest.raises(TaskCorruptedError, match=f"the database of store 'counts' at {path} is damaged: ") as raised:
        opened(path).read(b"\x01k")
    assert raised.value.task_id == "0_1"


def test_database_without_the_type_of_its_store_is_damaged(tmp_path: Path) -> None:
    committed(tmp_path / "db")
    database = opened(tmp_path / "db")
    database.write(rocks.KIND_KEY, rocks.DELETED)
    database.commit(None)
    database.close()
    with pytest.raises(TaskCorruptedError, match="the type of the store is missing"):
        opened(tmp_path / "db")


def test_missing_package_names_store_command_and_alternative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rocks, "find_spec", lambda name: None if name == "rocksdict" else util.find_spec(name))
    check_installed([])
    with pytest.raises(StreamsError) as raised:
        check_installed(["counts", "other"])
    assert str(raised.value) == (
        "store 'counts' is persistent, and the package of the extra pybroker[streams] is missing: run python -m pip "
        "install 'rocksdict>=0.3.29', or keep the stores in memory by default.dsl.store=in_memory"
    )
    with pytest.raises(StreamsError, match="store 'counts' is persistent"):
        opened(tmp_path / "db")


KILLED = """
import os, sys
from pathlib import Path
from pybroker.streams.state.rocks import RocksDatabase, StoreNumbers

database = RocksDatabase(Path(sys.argv[1]), "counts", "key-value", StoreNumbers())
for offset in range(100):
    database.write(b"\\x01k", b"%d" % offset)
    database.commit(offset)
database.write(b"\\x01k", b"not committed")
os._exit(9)
"""


def test_killed_process_leaves_its_last_commit(tmp_path: Path) -> None:
    words = [sys.executable, "-c", KILLED, str(tmp_path / "db")]
    assert subprocess.run(words, cwd=ROOT, check=False).returncode == 9
    database = opened(tmp_path / "db")
    assert (database.committed_offset, database.read(b"\x01k")) == (99, b"99")
    database.close()
