from __future__ import annotations

import inspect
import socket
from pathlib import Path

import pytest

from pybroker.broker.broker_state import BrokerState
from pybroker.broker.directory_reports import DirectoryReports
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import NewTopic
from pybroker.client.producing.producer import Producer
from pybroker.config.broker import BrokerConfig
from pybroker.controller.service import Controller
from pybroker.coordinator.group.service import GroupCoordinator
from pybroker.node import Node, NodeError
from pybroker.replica.publisher import PartitionPublisher
from pybroker.storage.compaction.cleaner import Cleaner
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.log_dirs.meta_properties import read_meta_properties
from pybroker.storage.moves import LogMoves
from pybroker.storage.partitions import Partitions
from pybroker.testing import Broker
from tests.support.conditions import wait_until


def config(directory: Path, **settings: str) -> BrokerConfig:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory)}
    return BrokerConfig(given | {name.replace("_", "."): value for name, value in settings.items()})


async def test_a_life_from_start_to_stop(tmp_path: Path) -> None:
    node = Node(config(tmp_path / "data"))
    states = [node.state]
    (listener,) = await node.start()
    states.append(node.state)
    assert listener.bound.port > 0
    await node.stop()
    states.append(node.state)
    assert states == [BrokerState.NOT_RUNNING, BrokerState.RUNNING, BrokerState.NOT_RUNNING]
    assert {path.name for path in (tmp_path / "data").iterdir()} >= {"meta.properties", ".kafka_cleanshutdown"}


async def test_the_identity_outlives_a_restart(tmp_path: Path) -> None:
    identities = set()
    for _ in range(2):
        node = Node(config(tmp_path))
        await node.start()
        await node.stop()
        identities.add(read_meta_properties(tmp_path))
    assert len(identities) == 1


async def test_a_port_in_use_is_reported_and_a_new_directory_is_not_left(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        node = Node(config(tmp_path / "data", listeners=f"PLAINTEXT://127.0.0.1:{port}"))
        with pytest.raises(NodeError, match=rf"cannot listen on PLAINTEXT://127\.0\.0\.1:{port}: the port is in use"):
            await node.start()
    assert node.state is BrokerState.NOT_RUNNING
    assert not (tmp_path / "data").exists()


async def test_an_address_that_the_machine_lacks_is_reported(tmp_path: Path) -> None:
    node = Node(config(tmp_path / "data", listeners="PLAINTEXT://192.0.2.1:0"))
    with pytest.raises(NodeError, match="the address is not assigned to this machine"):
        await node.start()


async def test_congestion_control_that_the_kernel_lacks_is_reported(tmp_path: Path) -> None:
    node = Node(config(tmp_path / "data", congestion_control="nonsense"))
    with pytest.raises(NodeError, match=r"congestion\.control=nonsense is not offered by this kernel"):
        await node.start()


async def test_a_node_can_start_again_after_a_failed_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        node = Node(config(tmp_path / "data", listeners=f"PLAINTEXT://127.0.0.1:{port}"))
        with pytest.raises(NodeError):
            await node.start()
    await node.start()
    await node.stop()


@pytest.mark.parametrize(
    ("part", "ending", "before_the_logs"),
    [
        (Cleaner, "stop", True),
        (LogMoves, "stop", True),
        (GroupCoordinator, "close", True),
        (PartitionPublisher, "stop", True),
        (DirectoryReports, "stop", True),
        (Partitions, "close", False),
        (Controller, "stop", False),
        (Directories, "release", False),
    ],
)
async def test_a_part_that_fails_at_the_end_does_not_keep_the_others(
    part: type,
    ending: str,
    before_the_logs: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = getattr(part, ending)

    def fail(*arguments: object, **more: object) -> None:
        original(*arguments, **more)
        raise RuntimeError("a fault")

    async def fail_later(*arguments: object, **more: object) -> None:
        await original(*arguments, **more)
        raise RuntimeError("a fault")

    node = Node(config(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(part, ending, fail_later if inspect.iscoroutinefunction(original) else fail)
        await node.start()
        await node.stop()
    assert node.state is BrokerState.NOT_RUNNING
    assert "did not end cleanly" in caplog.text
    assert (tmp_path / ".kafka_cleanshutdown").exists() is not before_the_logs
    other = Node(config(tmp_path))
    await other.start()
    await other.stop()


def test_a_log_that_rolled_is_flushed_up_to_its_new_segment(tmp_path: Path) -> None:
    properties = {"log.segment.bytes": "1048576", "log.flush.offset.checkpoint.interval.ms": "10"}
    with Broker(directory=tmp_path, properties=properties) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("rolls", partitions=1)])
        with Producer(broker.bootstrap_servers) as producer:
            for _ in range(6):
                producer.send("rolls", b"v" * 400_000, partition=0)
        wait_until(
            lambda: recovery_point(tmp_path, "rolls 0") >= 2, within=60, what="a recovery point in the checkpoint"
        )


def recovery_point(directory: Path, partition: str) -> int:
    path = directory / "recovery-point-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(partition)), 0)
