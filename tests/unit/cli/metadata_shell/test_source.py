from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.main import main
from pybroker.cli.metadata_shell.source import read_source
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import NewTopic
from pybroker.controller.quorum.snapshot.snapshots import write_snapshot
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker that has ended."""
    directory = tmp_path_factory.mktemp("data")
    with Broker(directory=directory) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2, configs={"retention.ms": "5"})])
    return directory


def shell(source: Path, *command: str) -> int:
    return main(["metadata-shell", "--directory" if source.is_dir() else "--snapshot", str(source), *command])


def test_a_log_is_shown_as_kafkas_tree(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell(directory, "cat", "/image/topics/byName/orders/1") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("PartitionRegistration(replicas=[1], directories=[")
    assert printed.endswith("leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)\n")
    assert shell(directory, "cat", "/image/configs/TOPIC:orders/retention.ms", "/image/features/metadataVersion") == 0
    assert capsys.readouterr().out.splitlines() == ["5", "Optional[4.0-IV3]"]


def test_a_log_is_shown_as_zookeepers_tree(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell(directory, "cat", "/brokers/topics/orders", "/brokers/topics/*/partitions/0/state") == 0
    topic, state = map(json.loads, capsys.readouterr().out.splitlines())
    assert topic == {"version": 1, "partitions": {"0": [1], "1": [1]}}
    assert (state["leader"], state["isr"], state["version"]) == (1, [1], 1)
    assert shell(directory, "cat", "/config/topics/orders") == 0
    assert json.loads(capsys.readouterr().out) == {"version": 1, "config": {"retention.ms": "5"}}


def test_a_snapshot_is_shown_as_the_log_that_it_stands_for(directory: Path, tmp_path: Path) -> None:
    image = read_source(directory)
    snapshot = write_snapshot(tmp_path, image, image.offset + 1, image.epoch, -1, 0)
    assert read_source(tmp_path / snapshot.file_name) == image
    assert read_source(tmp_path) == image


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no snapshot and no log is here"):
        read_source(tmp_path)
    (tmp_path / "other.txt").touch()
    with pytest.raises(CommandError, match=r"expected a \.checkpoint file"):
        read_source(tmp_path / "other.txt")
    (tmp_path / f"{5:020d}-{1:010d}.checkpoint").write_bytes(b"x" * 100)
    with pytest.raises(CommandError, match=r"claims|damaged"):
        read_source(tmp_path)
