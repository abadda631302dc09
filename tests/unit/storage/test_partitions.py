from __future__ import annotations

import base64
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.storage.errors import DirectoryError, DirectoryOfflineError
from pybroker.storage.log_config import build_log_config
from pybroker.storage.log_dirs.checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS, read_checkpoint
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.log_dirs.log_directory import LogDirectory
from pybroker.storage.native import Partition
from pybroker.storage.partitions import Opening, Partitions
from tests.support.partitions import open_one

CONFIG = build_log_config(TopicConfig({}, BrokerConfig({})))
ID = os.urandom(16)


class Node:
    """The log directories of a node, as one run after the other sees them."""

    def __init__(self, *paths: Path, on_failure: Callable[[Path, OSError], object] | None = None) -> None:
        self.paths = paths
        self.directories: Directories | None = None
        self._on_failure = on_failure

    def run(self, now_ms: Callable[[], int] = lambda: 0) -> Partitions:
        self.directories = Directories.acquire(self.paths, self.paths[0], 1)
        self.directories.format(1)
        partitions = Partitions(self.directories, now_ms, self._on_failure)
        partitions.scan()
        return partitions

    def end(self) -> None:
        if self.directories is not None:
            self.directories.release()
        self.directories = None


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "a", tmp_path / "b")
    yield made
    made.end()


def test_a_partition_goes_where_fewest_are(node: Node) -> None:
    partitions = node.run()
    for index in range(4):
        open_one(partitions, "orders", index, ID, CONFIG)
    assert [len(list(path.glob("orders-*"))) for path in node.paths] == [2, 2]


def test_new_partitions_go_where_fewest_are_whatever_went_before(node: Node) -> None:
    def begin(*indexes: int) -> list[list[int]]:
        """Open these; what is open in each directory then."""
        partitions.open_all([Opening(("orders", index), ID, CONFIG) for index in indexes])
        return [sorted(partition.index for partition in lying) for lying in partitions.by_directory().values()]

    partitions = node.run()
    assert begin(0, 1, 2, 3, 4, 5) == [[0, 2, 4], [1, 3, 5]]
    for index in (1, 3, 5):
        partitions.delete("orders", index)
    blocked = node.paths[1] / "orders-6"
    blocked.write_text("a file where a directory is due")
    assert begin(6, 7, 8) == [[0, 2, 4], [7, 8]]
    assert begin(9) == [[0, 2, 4], [7, 8, 9]]
    blocked.unlink()
    partitions.close(2, 7, clean=True)
    node.end()

    partitions = node.run()
    begin(0, 2, 4)
    assert begin(20) == [[0, 2, 4, 20], []], "what is found counts, until it is set aside"
    partitions.set_aside_strays()
    assert begin(21, 22, 23) == [[0, 2, 4, 20], [21, 22, 23]]
    moved, there = partitions.locate("orders", 0), partitions.locate("orders", 21)
    assert moved is not None
    assert there is not None
    assert partitions.moved(moved[0], there[1])
    assert begin(24) == [[2, 4, 20, 24], [0, 21, 22, 23]]


def test_many_new_partitions_count_those_before_them_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    count = Partitions._count

    def counted(partitions: Partitions) -> Counter[LogDirectory]:
        counts.append(count(partitions))
        return counts[-1]

    monkeypatch.setattr(Partitions, "_count", counted)
    partitions = node.run()
    for index in range(20):
        open_one(partitions, "orders", index, ID, CONFIG)
    assert len(counts) == 1
    assert [len(list(path.glob("orders-*"))) for path in node.paths] == [10, 10]


def test_a_partition_is_found_again_where_it_lies(node: Node) -> None:
    partitions = node.run()
    for index in range(4):
        open_one(partitions, "orders", index, ID, CONFIG)
    before = {path: sorted(entry.name for entry in path.glob("orders-*")) for path in node.paths}
    partitions.close(2, 7, clean=True)
    node.end()
    again = node.run()
    for index in (2, 0, 3, 1):
        open_one(again, "orders", index, ID, CONFIG)
    assert {path: sorted(entry.name for entry in path.glob("orders-*")) for path in node.paths} == before


def test_a_clean_close_writes_checkpoints_and_vouches_for_them(node: Node) -> None:
    partitions = node.run()
    open_one(partitions, "orders", 0, ID, CONFIG)
    partitions.close(2, 7, clean=True)
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        assert read_checkpoint(node.paths[0] / name) == {("orders", 0): 0}
    assert all((path / ".kafka_cleanshutdown").exists() for path in node.paths)
    node.end()
    assert node.run().to_recover == {}
    assert not any((path / ".kafka_cleanshutdown").exists() for path in node.paths)


def test_a_close_that_is_not_clean_vouches_for_nothing(node: Node) -> None:
    partitions = node.run()
    open_one(partitions, "orders", 0, ID, CONFIG)
    partitions.close(2, 7, clean=False)
    assert not any((path / ".kafka_cleanshutdown").exists() for path in node.paths)
    node.end()
    assert sum(node.run().to_recover.values()) == 1


def test_a_directory_of_another_topic_of_the_name_is_set_aside(node: Node) -> None:
    partitions = node.run()
    open_one(partitions, "orders", 0, ID, CONFIG)
    partitions.close(2, 7, clean=True)
    node.end()
    again = node.run()
    opened = open_one(again, "orders", 0, os.urandom(16), CONFIG)
    assert opened.topic_id != ID
    assert len([entry for path in node.paths for entry in path.glob("orders-0.*-stray")]) == 1


def test_what_no_topic_claims_is_set_aside(node: Node) -> None:
    partitions = node.run()
    for name in ("orders", "invoices"):
        open_one(partitions, name, 0, ID, CONFIG)
    partitions.close(2, 7, clean=True)
    node.end()
    again = node.run()
    open_one(again, "orders", 0, ID, CONFIG)
    again.set_aside_strays()
    names = {entry.name.split(".")[0] + entry.suffix[-6:] for path in node.paths for entry in path.glob("*-0*")}
    assert {name for name in names if "invoices" in name and not name.endswith("-stray")} == set()
    assert "orders-0" in names


def test_what_was_being_deleted_is_gone_after_a_restart(node: Node) -> None:
    node.run()
    node.end()
    left = node.paths[0] / f"orders-0.{'0a' * 16}-delete"
    left.mkdir()
    (left / "00000000000000000000.log").write_bytes(b"x")
    node.run()
    assert not left.exists()


def test_a_deleted_partition_is_not_open_and_leaves_no_directory(node: Node) -> None:
    partitions = node.run()
    open_one(partitions, "orders", 0, ID, CONFIG)
    partitions.delete("orders", 0)
    assert partitions.get("orders", 0) is None
    assert not any((path / "orders-0").exists() for path in node.paths)


def test_a_failed_directory_takes_its_partitions_and_no_others(node: Node) -> None:
    partitions = node.run()
    partitions.set_aside_strays()
    for index in range(4):
        open_one(partitions, "orders", index, ID, CONFIG)
    lost = partitions.fail(str(node.paths[0]))
    assert [partition.topic for partition in lost] == ["orders", "orders"]
    assert all(partitions.is_lost("orders", partition.index) for partition in lost)
    assert len(partitions.all()) == 2
    open_one(partitions, "invoices", 0, ID, CONFIG)
    assert (node.paths[1] / "invoices-0").exists()
    partitions.fail(str(node.paths[1]))
    with pytest.raises(DirectoryError, match="all log directories are offline"):
        open_one(partitions, "invoices", 1, ID, CONFIG)


def test_a_damaged_checkpoint_costs_no_start(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.run()
    node.end()
    (node.paths[0] / RECOVERY_POINTS).write_text("nonsense")
    partitions = node.run()
    assert open_one(partitions, "orders", 0, ID, CONFIG).log_end_offset == 0
    assert "ignoring the file" in caplog.text


def test_a_partition_of_a_failed_directory_is_not_begun_anew_in_another(node: Node) -> None:
    partitions = node.run()
    partitions.set_aside_strays()
    for index in range(2):
        open_one(partitions, "orders", index, ID, CONFIG)
    (lost,) = partitions.fail(str(node.paths[0]))
    with pytest.raises(DirectoryOfflineError):
        open_one(partitions, "orders", lost.index, ID, CONFIG)
    partitions.delete("orders", lost.index)
    assert not partitions.is_lost("orders", lost.index)
    # The topic is gone: one of the same name may begin where there is room.
    open_one(partitions, "orders", lost.index, os.urandom(16), CONFIG)
    assert (node.paths[1] / f"orders-{lost.index}").exists()


def test_what_may_lie_in_a_directory_that_is_missing_at_the_start_is_lost_and_new_topics_are_not(node: Node) -> None:
    partitions = node.run()
    for index in range(4):
        open_one(partitions, "orders", index, ID, CONFIG)
    partitions.close(2, 7, clean=True)
    node.end()
    hidden = node.paths[1].rename(node.paths[1].with_name("hidden"))
    node.paths[1].write_text("a file where a directory is due")
    again = node.run()
    for index in (0, 2):
        open_one(again, "orders", index, ID, CONFIG)
    for index in (1, 3):
        with pytest.raises(DirectoryOfflineError):
            open_one(again, "orders", index, ID, CONFIG)
    again.set_aside_strays()
    open_one(again, "invoices", 0, ID, CONFIG)
    assert sorted(path.name for path in node.paths[0].glob("*-?")) == ["invoices-0", "orders-0", "orders-2"]
    assert sorted(path.name for path in hidden.glob("orders-?")) == ["orders-1", "orders-3"]


def test_a_directory_that_vanished_is_noticed_and_reported_once(tmp_path: Path) -> None:
    reported: list[Path] = []
    node = Node(tmp_path / "a", tmp_path / "b", on_failure=lambda path, _error: reported.append(path))
    partitions = node.run()
    for index in range(2):
        open_one(partitions, "orders", index, ID, CONFIG)
    shutil.rmtree(node.paths[1])
    for _ in range(2):
        partitions.write_checkpoints()
    assert reported == [node.paths[1]]
    assert read_checkpoint(node.paths[0] / HIGH_WATERMARKS) == {("orders", 0): 0}
    partitions.fail(str(node.paths[1]))
    partitions.close(2, 7, clean=True)
    assert (node.paths[0] / ".kafka_cleanshutdown").exists()
    node.end()


def test_a_topic_that_lies_in_two_directories_is_opened_where_its_id_is(node: Node) -> None:
    partitions = node.run()
    open_one(partitions, "orders", 0, ID, CONFIG)
    partitions.close(2, 7, clean=True)
    node.end()
    stale = node.paths[1] / "orders-0"
    shutil.copytree(node.paths[0] / "orders-0", stale)
    other = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    (stale / "partition.metadata").write_text(f"version: 0\ntopic_id: {other}\n")
    again = node.run()
    assert open_one(again, "orders", 0, ID, CONFIG).topic_id == ID
    assert not stale.exists()
    assert (node.paths[0] / "orders-0").exists()


def test_logs_are_flushed_when_their_time_is_over(node: Node) -> None:
    partitions = node.run(now_ms=lambda: 5000)
    open_one(partitions, "slow", 0, ID, CONFIG)
    quick = open_one(partitions, "quick", 0, ID, build_log_config(TopicConfig({"flush.ms": "1000"}, BrokerConfig({}))))
    assert quick.flush_due(5999) is False
    assert quick.flush_due(6000) is True
    assert quick.flush_due(6999) is False
    partitions.flush_due()
    assert quick.flush_due(7000) is True


def test_many_are_opened_at_once_and_each_that_fails_fails_alone(node: Node) -> None:
    partitions = node.run()
    first = partitions.open_all(Opening(("orders", index), ID, CONFIG) for index in range(6))
    assert all(isinstance(opened, Partition) for opened in first.values())
    assert [len(list(path.glob("orders-*"))) for path in node.paths] == [3, 3]
    partitions.close(2, 7, clean=True)
    node.end()
    lying = {path.name: path for root in node.paths for path in root.glob("orders-*")}
    (lying["orders-1"] / "partition.metadata").write_text("nonsense")
    (lying["orders-3"] / f"{0:020}.log").unlink()
    (lying["orders-3"] / f"{0:020}.log").mkdir()
    again = node.run()
    openings = [Opening(("orders", index), ID, CONFIG) for index in (5, 1, 4, 3, 0, 7)]
    outcomes = again.open_all([*openings, Opening(("orders", 2), os.urandom(16), CONFIG)])
    failed = {key[1]: outcome for key, outcome in outcomes.items() if isinstance(outcome, Exception)}
    assert sorted(failed) == [1, 3]
    assert isinstance(failed[1], ValueError)
    assert 'not a topic id: "nonsense"' in str(failed[1])
    assert isinstance(failed[3], OSError)
    assert [again.is_lost("orders", index) for index in range(8)] == [index in failed for index in range(8)]
    assert sorted(partition.index for partition in again.all()) == [0, 2, 4, 5, 7]
    assert again.open_all(openings[:1]) == {("orders", 5): again.get("orders", 5)}
    assert again.open_all([]) == {}
