from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.storage.checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS, read_checkpoint
from pybroker.storage.directories import Directories
from pybroker.storage.errors import DirectoryError
from pybroker.storage.log_config import build_log_config
from pybroker.storage.partitions import Partitions

CONFIG = build_log_config(TopicConfig({}, BrokerConfig({})))
ID = os.urandom(16)


def one_by_one(closings: Iterable[Callable[[], None]]) -> None:
    for closing in closings:
        closing()


class Node:
    """The log directories of a node, as one run after the other sees them."""

    def __init__(self, *paths: Path) -> None:
        self.paths = paths
        self.directories: Directories | None = None

    def run(self) -> Partitions:
        self.directories = Directories.acquire(self.paths, self.paths[0], 1)
        self.directories.format(1)
        partitions = Partitions(self.directories, lambda: 0)
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
        partitions.open("orders", index, ID, CONFIG)
    assert [len(list(path.glob("orders-*"))) for path in node.paths] == [2, 2]


def test_a_partition_is_found_again_where_it_lies(node: Node) -> None:
    partitions = node.run()
    for index in range(4):
        partitions.open("orders", index, ID, CONFIG)
    before = {path: sorted(entry.name for entry in path.glob("orders-*")) for path in node.paths}
    partitions.close(one_by_one, 7, clean=True)
    node.end()
    again = node.run()
    for index in (2, 0, 3, 1):
        again.open("orders", index, ID, CONFIG)
    assert {path: sorted(entry.name for entry in path.glob("orders-*")) for path in node.paths} == before


def test_a_clean_close_writes_checkpoints_and_vouches_for_them(node: Node) -> None:
    partitions = node.run()
    partitions.open("orders", 0, ID, CONFIG)
    partitions.close(one_by_one, 7, clean=True)
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        assert read_checkpoint(node.paths[0] / name) == {("orders", 0): 0}
    assert all((path / ".kafka_cleanshutdown").exists() for path in node.paths)
    node.end()
    assert node.run().to_recover == 0
    assert not any((path / ".kafka_cleanshutdown").exists() for path in node.paths)


def test_a_close_that_is_not_clean_vouches_for_nothing(node: Node) -> None:
    partitions = node.run()
    partitions.open("orders", 0, ID, CONFIG)
    partitions.close(one_by_one, 7, clean=False)
    assert not any((path / ".kafka_cleanshutdown").exists() for path in node.paths)
    node.end()
    assert node.run().to_recover == 1


def test_a_directory_of_another_topic_of_the_name_is_set_aside(node: Node) -> None:
    partitions = node.run()
    partitions.open("orders", 0, ID, CONFIG)
    partitions.close(one_by_one, 7, clean=True)
    node.end()
    again = node.run()
    opened = again.open("orders", 0, os.urandom(16), CONFIG)
    assert opened.topic_id != ID
    assert len([entry for path in node.paths for entry in path.glob("orders-0.*-stray")]) == 1


def test_what_no_topic_claims_is_set_aside(node: Node) -> None:
    partitions = node.run()
    for name in ("orders", "invoices"):
        partitions.open(name, 0, ID, CONFIG)
    partitions.close(one_by_one, 7, clean=True)
    node.end()
    again = node.run()
    again.open("orders", 0, ID, CONFIG)
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
    partitions.open("orders", 0, ID, CONFIG)
    partitions.delete("orders", 0)
    assert partitions.get("orders", 0) is None
    assert not any((path / "orders-0").exists() for path in node.paths)


def test_a_failed_directory_takes_its_partitions_and_no_others(node: Node) -> None:
    partitions = node.run()
    for index in range(4):
        partitions.open("orders", index, ID, CONFIG)
    lost = partitions.fail(str(node.paths[0]))
    assert len(lost) == 2
    assert len(partitions.all()) == 2
    partitions.open("invoices", 0, ID, CONFIG)
    assert (node.paths[1] / "invoices-0").exists()
    partitions.fail(str(node.paths[1]))
    with pytest.raises(DirectoryError, match="no log directory is left online"):
        partitions.open("invoices", 1, ID, CONFIG)


def test_a_damaged_checkpoint_costs_no_start(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.run()
    node.end()
    (node.paths[0] / RECOVERY_POINTS).write_text("nonsense")
    partitions = node.run()
    assert partitions.open("orders", 0, ID, CONFIG).log_end_offset == 0
    assert "it is ignored" in caplog.text
