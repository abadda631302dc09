from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.storage.log_config import build_log_config
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.native import Partition
from pybroker.storage.partitions import Partitions
from pybroker.storage.retention import Limits, Retention, limits_of
from tests.support.batches import batch_of
from tests.support.partitions import lead, open_one
from tests.support.wire import Wire, produce

BROKER = BrokerConfig({})
FUTURE_MS = 10**15


def settings(**configs: str) -> TopicConfig:
    return TopicConfig({name.replace("_", "."): text for name, text in configs.items()}, BROKER)


@pytest.mark.parametrize(
    ("configs", "limits"),
    [
        ({}, Limits(604_800_000, None)),
        ({"retention_ms": "-1"}, Limits(None, None)),
        ({"retention_ms": "5", "retention_bytes": "0"}, Limits(5, 0)),
        ({"retention_ms": "5", "cleanup_policy": "compact"}, Limits(None, None)),
        ({"retention_ms": "5", "retention_bytes": "7", "cleanup_policy": "compact,delete"}, Limits(5, 7)),
        ({"retention_ms": "5", "retention_bytes": "7", "cleanup_policy": ""}, Limits(None, None)),
    ],
)
def test_a_topics_settings_ask_for_limits_where_its_policy_deletes(configs: dict[str, str], limits: Limits) -> None:
    assert limits_of(settings(**configs)) == limits


class Stage:
    """A log, and retention over it with work that is done when the test says so."""

    def __init__(self, directory: Path) -> None:
        config = BrokerConfig({"log.dirs": str(directory)})
        self.directories = Directories.acquire(config.log_directories, config.metadata_directory, config.node_id)
        self.directories.format(config.node_id)
        self.partitions = Partitions(self.directories, lambda: 0)
        self.partitions.scan()
        self.settings: TopicConfig | None = settings()
        self.later: list[tuple[int, Callable[[], None]]] = []
        self.retention = Retention(
            self.partitions, lambda _: self.settings, lambda *work: self.later.append(work), lambda: FUTURE_MS
        )

    def open(self) -> Partition:
        assert self.settings is not None
        opened = open_one(self.partitions, "t", 0, os.urandom(16), build_log_config(self.settings))
        lead(opened)
        return opened


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.directories.release()


def test_a_log_without_records_is_left_alone(stage: Stage) -> None:
    partition = stage.open()
    stage.settings = settings(retention_ms="0", retention_bytes="0")
    stage.retention.delete_old_segments()
    assert (partition.log_start_offset, stage.later) == (0, [])


def test_a_topic_that_goes_is_passed_over(stage: Stage) -> None:
    stage.open()
    stage.settings = None
    stage.retention.delete_old_segments()
    assert stage.later == []


def test_a_log_that_fails_is_reported_and_keeps_no_other(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.open().close()
    stage.settings = settings(retention_ms="0")
    stage.retention.delete_old_segments()
    assert "segments of t-0 cannot be deleted" in caplog.text
    stage.retention.stop()
    caplog.clear()
    stage.retention.delete_old_segments()
    assert caplog.text == ""


def test_files_are_removed_when_their_delay_is_over(tmp_path: Path) -> None:
    from pybroker.testing import Broker

    with Broker(directory=tmp_path / "data") as broker, Wire(broker.bootstrap_servers) as wire:
        wire.call("CreateTopics", 7, topics=[{"name": "t", "num_partitions": 1, "replication_factor": 1}])
        wire.query(produce("t", batch_of(b"a")))
    stage = Stage(tmp_path / "data")
    partition = open_one(stage.partitions, "t", 0, topic_id(tmp_path / "data/t-0"), build_log_config(settings()))
    lead(partition)
    stage.settings = settings(retention_ms="0", file_delete_delay_ms="77")
    stage.retention.delete_old_segments()
    assert partition.log_start_offset == partition.log_end_offset == 1
    marked = sorted(path.name for path in (tmp_path / "data/t-0").glob("*.deleted"))
    assert f"{0:020}.log.deleted" in marked
    ((delay_ms, work),) = stage.later
    assert delay_ms == 77
    work()
    assert list((tmp_path / "data/t-0").glob("*.deleted")) == []
    work()  # what is gone already is no failure
    stage.directories.release()


def topic_id(directory: Path) -> bytes:
    from pybroker.storage.log_dirs.meta_properties import id_bytes

    text = (directory / "partition.metadata").read_text()
    return id_bytes(text.rsplit(": ", 1)[1].strip())
