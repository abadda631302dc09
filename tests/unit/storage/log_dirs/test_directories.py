from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pybroker.storage.errors import DirectoryError, DirectoryLockedError, ForeignDirectoryError, NotFormattedError
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.log_dirs.log_directory import holder_of
from pybroker.storage.log_dirs.meta_properties import MetaProperties, read_meta_properties, write_meta_properties


def acquire(*paths: Path, node_id: int = 1) -> Directories:
    return Directories.acquire(paths, paths[0], node_id)


def test_an_empty_directory_is_formatted_and_keeps_its_cluster(tmp_path: Path) -> None:
    directories = acquire(tmp_path / "a")
    cluster_id = directories.format(1)
    directories.release()
    again = acquire(tmp_path / "a")
    assert again.format(1) == cluster_id
    again.release()
    assert len(cluster_id) == 22


def test_a_directory_that_joins_gets_the_cluster_of_the_others(tmp_path: Path) -> None:
    first = acquire(tmp_path / "a")
    cluster_id = first.format(1)
    first.release()
    both = acquire(tmp_path / "b", tmp_path / "a")
    assert both.format(1) == cluster_id
    both.release()
    joined = read_meta_properties(tmp_path / "b")
    assert joined is not None
    assert (joined.cluster_id, joined.node_id) == (cluster_id, 1)


def test_a_directory_is_locked_within_the_process(tmp_path: Path) -> None:
    directories = acquire(tmp_path)
    with pytest.raises(
        DirectoryLockedError, match=rf"{tmp_path} is locked by another broker \(process {os.getpid()}\)"
    ):
        acquire(tmp_path)
    directories.release()
    acquire(tmp_path).release()


def test_a_directory_is_locked_between_processes(tmp_path: Path) -> None:
    directories = acquire(tmp_path)
    code = (
        "from pathlib import Path; from pybroker.storage.log_dirs.log_directory import holder_of; "
        f"print(holder_of(Path({str(tmp_path)!r})))"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(seen) == os.getpid()
    directories.release()
    assert holder_of(tmp_path) is None


def test_another_nodes_directory_is_refused(tmp_path: Path) -> None:
    directories = acquire(tmp_path, node_id=1)
    directories.format(1)
    directories.release()
    with pytest.raises(ForeignDirectoryError, match=r"belongs to node 1, but node\.id is 2"):
        acquire(tmp_path, node_id=2)
    acquire(tmp_path, node_id=1).release()


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        directories = acquire(tmp_path / name)
        directories.format(1)
        directories.release()
    with pytest.raises(ForeignDirectoryError, match="belongs to cluster"):
        acquire(tmp_path / "a", tmp_path / "b")


def test_a_directory_with_other_content_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"")
    with pytest.raises(ForeignDirectoryError, match=r"contains holiday\.jpg"):
        acquire(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


def test_a_file_in_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DirectoryError, match="expected a directory, found a file"):
        acquire(tmp_path / "file")


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x").write_bytes(b"")
    with pytest.raises(DirectoryError):
        acquire(tmp_path / "new", tmp_path / "bad")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version=0\ncluster.id=x\nbroker.id=1\n", "expected version=1"),
        ("version=1\ncluster.id=x\n", "expected cluster.id and node.id"),
    ],
)
def test_meta_properties_of_another_kind_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(ForeignDirectoryError, match=message):
        acquire(tmp_path)


def test_a_clean_shutdown_counts_once(tmp_path: Path) -> None:
    directories = acquire(tmp_path)
    directories.format(1)
    directory = directories.logs[0]
    assert directory.take_clean_shutdown() is False
    directory.write_clean_shutdown(7)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version": 0, "brokerEpoch": 7}'
    assert [directory.take_clean_shutdown(), directory.take_clean_shutdown()] == [True, False]
    directories.release()


def test_a_log_directory_that_the_system_refuses_is_offline_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "b").write_text("a file where a directory is due")
    directories = acquire(tmp_path / "a", tmp_path / "b")
    directories.format(1)
    assert [directory.offline for directory in directories.logs] == [False, True]
    assert [directory.path for directory in directories.online] == [tmp_path / "a"]
    assert "the directory is offline" in caplog.text
    directories.release()
    assert (tmp_path / "b").read_text() == "a file where a directory is due"


def test_no_broker_is_without_the_directory_of_its_metadata_or_the_last_one_for_logs(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("")
    with pytest.raises(DirectoryError, match="expected a directory"):
        acquire(tmp_path / "b", tmp_path / "a")
    with pytest.raises(DirectoryError, match="none of the log directories"):
        Directories.acquire((tmp_path / "b",), tmp_path / "metadata", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


def test_what_a_disk_says_distinguishes_a_failed_directory_from_a_damaged_file(tmp_path: Path) -> None:
    directories = acquire(tmp_path / "a")
    directories.format(1)
    directory = directories.logs[0]
    assert directory.has_failed(OSError(errno.EIO, "the disk"))
    assert not directory.has_failed(NotADirectoryError(errno.ENOTDIR, "one partition"))
    directories.release()
    (tmp_path / "a").rename(tmp_path / "gone")
    assert directory.has_failed(FileNotFoundError(errno.ENOENT, "vanished"))


def test_a_node_of_a_cluster_needs_directories_that_were_formatted(tmp_path: Path) -> None:
    directories = acquire(tmp_path / "a", tmp_path / "b")
    with pytest.raises(NotFormattedError, match=r"^No readable meta.properties files found\. .*`pybroker format` to"):
        directories.require_identity()
    directories.release()
    assert list(tmp_path.iterdir()) == []


def test_a_log_directory_that_is_new_beside_a_formatted_one_needs_no_formatting(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_meta_properties(tmp_path / "a", MetaProperties("c", 1, "JEXY6aqzQY-32P5TStzaFg"))
    directories = acquire(tmp_path / "a", tmp_path / "b")
    directories.require_identity()
    assert directories.format(1) == "c"
    directories.release()


def test_the_metadata_directory_itself_has_to_be_formatted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_meta_properties(tmp_path / "a", MetaProperties("c", 1, "JEXY6aqzQY-32P5TStzaFg"))
    directories = acquire(tmp_path / "b", tmp_path / "a")
    with pytest.raises(NotFormattedError, match=rf"^No `meta.properties` found in {tmp_path}/b \(have you run"):
        directories.require_identity()
    directories.release()


def test_the_last_runs_broker_epoch_is_that_of_every_directory_or_none(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    directories = Directories.acquire(paths, paths[0], 1)
    directories.format(1)
    first, second = directories.logs
    assert directories.last_broker_epoch == -1
    first.write_clean_shutdown(7)
    assert directories.last_broker_epoch == -1, "the other directory was not left cleanly"
    second.write_clean_shutdown(8)
    assert directories.last_broker_epoch == -1, "they are of two runs"
    second.write_clean_shutdown(7)
    assert directories.last_broker_epoch == 7
    for damaged in ("", "[]", '{"brokerEpoch": "7"}', "{"):
        (second.path / ".kafka_cleanshutdown").write_text(damaged)
        assert directories.last_broker_epoch == -1
    directories.release()
