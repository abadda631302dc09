"""Moves between log directories: begun, ended, resumed and given up, with real logs in real directories."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.storage.errors import (
    DirectoryOfflineError,
    LogDirectoryNotFoundError,
    PartitionNotHereError,
    TopicNameTooLongError,
)
from pybroker.storage.log_config import build_log_config
from pybroker.storage.log_dirs.checkpoint import LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.moves import LogMoves, Move
from pybroker.storage.native import Partition, advance_log_start, move_count, prepare_move
from pybroker.storage.partitions import Partitions
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.partitions import lead, open_one

CONFIG = build_log_config(TopicConfig({}, BrokerConfig({})))
ID = os.urandom(16)
UNPACED = float(2**63)
# A megabyte takes this pace a quarter of an hour.
SLOW = 1024.0


class Node:
    """A node with two log directories, one run after the other."""

    def __init__(self, root: Path) -> None:
        self.paths = [root / "a", root / "b"]
        self.failed: list[Path] = []
        self.moved: list[tuple[str, int]] = []
        self.start()

    def start(self, pace: float = UNPACED) -> None:
        self.directories = Directories.acquire(self.paths, self.paths[0], 1)
        self.directories.format(1)
        self.partitions = Partitions(self.directories, lambda: 0)
        self.partitions.scan()
        self.moves = LogMoves(
            self.partitions,
            self.directories,
            threads=2,
            max_bytes_per_second=pace,
            directory_failed=lambda path, _error: self.failed.append(path),
            moved=lambda move: self.moved.append(move.key),
        )

    def stop(self, *, clean: bool = True) -> None:
        self.moves.stop()
        self.partitions.close(2, 1, clean=clean)
        self.directories.release()

    def fill(self, size: int = 100, where: int = 0) -> None:
        """Put a log with one record where a broker that was here before would have it."""
        folder = self.paths[where] / "orders-0"
        folder.mkdir()
        (folder / f"{0:020}.log").write_bytes(batch_of(b"x" * size))
        self.partitions.scan()

    def open(self, topic: str = "orders", index: int = 0, assigned: bytes | None = None) -> Partition:
        partition = open_one(self.partitions, topic, index, ID, CONFIG, assigned)
        lead(partition)
        return partition

    def request(self, path: Path, topic: str = "orders", index: int = 0) -> None:
        self.moves.request(topic, index, str(path))

    def completed(self) -> None:
        wait_until(lambda: not self.moves.all(), within=60, what="no log is on its way")

    def holders(self, topic: str = "orders", index: int = 0) -> list[Path]:
        return [path for path in self.paths if (path / f"{topic}-{index}").exists()]

    def futures(self) -> list[Path]:
        return [future for path in self.paths for future in path.glob("*-future")]

    def slow_move(self) -> Move:
        """One of a megabyte that takes long, and has begun."""
        self.fill(1 << 20)
        self.open()
        self.moves.set_pace(SLOW)
        self.request(self.paths[1])
        (move,) = self.moves.all()
        wait_until(lambda: move.state.bytes > 0, within=60, what="the copying has begun")
        return move


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.moves.stop()
    made.directories.release()


def test_a_log_moves_and_everything_that_is_known_of_it_follows(node: Node) -> None:
    node.fill()
    partition = node.open()
    advance_log_start(partition, 1)
    node.partitions.write_checkpoints()
    node.request(node.paths[1])
    node.completed()
    assert (node.holders(), node.futures(), node.moved) == ([node.paths[1]], [], [("orders", 0)])
    assert partition.directory == str(node.paths[1])
    assert (partition.log_start_offset, partition.log_end_offset, partition.high_watermark) == (1, 1, 1)
    located = node.partitions.locate("orders", 0)
    assert located is not None
    assert (located[0], located[1].path) == (partition, node.paths[1])
    for name in (RECOVERY_POINTS, LOG_STARTS):
        assert [read_checkpoint(path / name) for path in node.paths] == [{}, {("orders", 0): 1}]
    assert list(node.paths[0].glob("orders-0*")) == []
    assert move_count(str(node.paths[1] / "orders-0")) == 1
    node.request(node.paths[1])
    assert node.moves.all() == []
    node.request(node.paths[0])
    node.completed()
    assert node.holders() == [node.paths[0]]


def test_without_a_pace_a_log_stays_on_its_way_until_there_is_one(node: Node) -> None:
    node.fill(1 << 20)
    node.open()
    node.moves.set_pace(0)
    node.request(node.paths[1])
    wait_until(lambda: len(node.futures()) == 1, within=60, what="the future replica is there")
    assert [move.key for move in node.moves.all()] == [("orders", 0)]
    assert node.holders() == [node.paths[0]]
    node.request(node.paths[0])
    assert (node.moves.all(), node.futures()) == ([], [])
    node.request(node.paths[1])
    node.moves.set_pace(1e12)
    node.completed()
    assert (node.holders(), node.moved) == ([node.paths[1]], [("orders", 0)])


def test_what_cannot_be_moved_is_refused(node: Node, tmp_path: Path) -> None:
    node.open()
    for path in (tmp_path / "c", Path("a")):
        with pytest.raises(LogDirectoryNotFoundError):
            node.request(path)
    with pytest.raises(TopicNameTooLongError):
        node.request(node.paths[0], "t" * 220)
    node.partitions.fail(str(node.paths[1]))
    with pytest.raises(DirectoryOfflineError):
        node.request(node.paths[1])
    node.partitions.fail(str(node.paths[0]))
    node.directories.logs[1].offline = False
    with pytest.raises(DirectoryOfflineError):
        node.request(node.paths[1])


def test_a_partition_that_comes_later_is_put_where_it_was_asked_to_be(node: Node) -> None:
    for index in range(3):
        with pytest.raises(PartitionNotHereError):
            node.request(node.paths[1], index=index)
        node.open(index=index)
        assert node.holders(index=index) == [node.paths[1]]


def test_the_present_directory_cancels_a_move(node: Node) -> None:
    move = node.slow_move()
    assert node.moves.is_moving("orders", 0)
    assert move.lag == 1
    assert len(node.futures()) == 1
    node.request(node.paths[1])
    assert node.moves.all() == [move], "where it is on its way to is no news"
    node.request(node.paths[0])
    assert (node.moves.all(), node.futures(), node.holders()) == ([], [], [node.paths[0]])
    node.moves.set_pace(UNPACED)
    node.request(node.paths[1])
    node.completed()
    assert node.holders() == [node.paths[1]]


def test_a_move_that_waits_for_a_thread_is_cancelled_at_once(node: Node) -> None:
    for index in range(3):
        node.open(index=index)
    homes = [node.holders(index=index)[0] for index in range(3)]
    holding = threading.Event()
    working = [node.moves._workers.submit(holding.wait, 60) for _ in range(2)]
    try:
        for index, home in enumerate(homes):
            node.request(next(path for path in node.paths if path != home), index=index)
        assert len(node.futures()) == 3
        node.request(homes[0], index=0)
        assert [move.key for move in node.moves.all()] == [("orders", 1), ("orders", 2)]
        assert len(node.futures()) == 2
    finally:
        holding.set()
    node.completed()
    assert all(work.result() for work in working)
    assert [node.holders(index=index)[0] == homes[index] for index in range(3)] == [True, False, False]


def test_a_deleted_topic_takes_its_future_replica_along(node: Node) -> None:
    node.slow_move()
    node.partitions.delete("orders", 0)
    node.completed()
    assert (node.futures(), node.holders(), node.failed) == ([], [], [])


@pytest.mark.parametrize("clean", [True, False])
def test_the_next_start_goes_on_with_a_move(node: Node, clean: bool) -> None:
    node.slow_move()
    node.stop(clean=clean)
    assert (len(node.futures()), node.holders()) == (1, [node.paths[0]])
    node.start()
    node.open()
    node.partitions.set_aside_strays()
    node.moves.resume()
    node.completed()
    assert (node.futures(), node.holders()) == ([], [node.paths[1]])


def test_a_future_replica_of_no_use_is_removed_at_the_start(node: Node) -> None:
    node.open()
    node.open(index=1)
    node.stop()
    stray = ["gone-0", "orders-0", "orders-0"]
    for number, name in enumerate(stray):
        future = node.paths[number % 2] / f"{name}.{number:032x}-future"
        future.mkdir()
        (future / f"{0:020}.log").write_bytes(b"whatever")
    other = node.paths[1] / f"orders-1.{7:032x}-future"
    other.mkdir()
    (other / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")
    node.start()
    for index in (0, 1):
        node.open(index=index)
    homes = [node.holders(index=index) for index in (0, 1)]
    node.moves.resume()
    node.completed()
    assert node.futures() == []
    assert node.holders(index=1) == homes[1]


def test_a_crash_between_the_two_names_leaves_the_log_that_was_moved(node: Node) -> None:
    node.fill()
    partition = node.open()
    advance_log_start(partition, 1)
    node.partitions.write_checkpoints()
    old, new = (path / "orders-0" for path in node.paths)
    shutil.copytree(old, new)
    prepare_move(partition, str(new))
    node.moves.stop()
    node.directories.release()
    node.start()
    partition = node.open()
    assert (partition.directory, partition.log_start_offset) == (str(node.paths[1]), 1)
    assert node.holders() == [node.paths[1]]
    assert list(node.paths[0].glob("orders-0*")) == []


def test_what_was_left_behind_is_not_served_while_the_log_is_offline(node: Node) -> None:
    node.open()
    elsewhere = os.urandom(16)
    node.stop()
    node.start()
    node.directories.logs[1].offline = True
    with pytest.raises(DirectoryOfflineError):
        node.open(assigned=elsewhere)
    assert node.partitions.is_lost("orders", 0)
    assert node.holders() == [node.paths[0]]


def test_a_target_that_vanishes_ends_the_move_and_is_reported(node: Node) -> None:
    move = node.slow_move()
    shutil.rmtree(node.paths[1])
    node.moves.set_pace(UNPACED)
    node.completed()
    assert node.failed == [node.paths[1]]
    assert node.partitions.locate("orders", 0) == (move.partition, move.source)
    assert move.partition.flush() == 1


def test_a_pace_with_which_moves_stand_still_is_logged_once(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    for pace in (0, 0, 1, 0):
        node.moves.set_pace(pace)
    assert caplog.messages == 2 * [
        "replica.alter.log.dirs.io.max.bytes.per.second=0: moves between log directories stop until it is raised"
    ]


def test_the_moves_to_a_target_that_failed_are_given_up(node: Node) -> None:
    node.slow_move()
    node.partitions.fail(str(node.paths[1]))
    node.moves.give_up_failed()
    node.completed()
    assert (node.futures(), node.holders()) == ([], [node.paths[0]])


def test_a_log_that_fails_is_moved_by_the_next_start(node: Node) -> None:
    move = node.slow_move()
    node.partitions.fail(str(node.paths[0]))
    move.state.cancel()
    node.completed()
    assert (len(node.futures()), node.failed) == (1, [])
