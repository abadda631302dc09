from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pybroker.client.admin import Admin
from pybroker.client.async_admin import AsyncAdmin
from pybroker.config.errors import ConfigError
from pybroker.node import NodeError
from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce


def test_a_broker_answers_when_the_call_returns_and_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["orders"])
        assert admin.list_topics() == ["orders"]
    assert not broker.directory.exists()
    assert set(threading.enumerate()) - before == set()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_partition": 7}, "Unknown broker config name: num.partition; is num.partitions meant?"),
        ({"properties": {"log.retention.sm": "1"}}, "log.retention.sm; is log.retention.ms meant?"),
        ({"colour": "blue"}, "Unknown broker config name: colour"),
        ({"num_partitions": 0}, "num.partitions=0: expected a whole number from 1 to 2147483647"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_and_leaves_no_directory(
    settings: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ConfigError, match=re.escape(words)):
        Broker(**settings)
    assert list(tmp_path.iterdir()) == []


def test_several_brokers_run_at_once() -> None:
    with Broker() as one, Broker() as other:
        with Admin(one.bootstrap_servers) as admin:
            admin.create_topics(["here"])
        with Admin(other.bootstrap_servers) as admin:
            assert admin.list_topics() == []
        assert one.bootstrap_servers != other.bootstrap_servers


def test_a_broker_that_stopped_has_no_file_open_before_garbage_is_collected() -> None:
    """Of a broker with topics and groups; the kernel's table tells."""
    gc.collect()
    gc.disable()
    try:
        before = open_files()
        for _ in range(3):
            with Broker(offsets_topic_num_partitions=3) as broker:
                use(broker.bootstrap_servers)
                assert any("/t-" in path for path in open_files() - before), "the log of a topic is open meanwhile"
            its_own = (str(broker.directory), "anon_inode:[eventfd]")
            assert [path for path in (open_files() - before).elements() if path.startswith(its_own)] == []
    finally:
        gc.enable()


def use(bootstrap_servers: str) -> None:
    """Produce a record, consume it in a group, and commit."""
    with Wire(bootstrap_servers) as wire:
        topic = {"name": "t", "num_partitions": 2, "replication_factor": 1}
        assert wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000).topics[0].error_code == 0
        wire.ask(produce("t", batch_of(b"x")))
        wait_until(
            lambda: wire.call("FindCoordinator", 2, key="g", key_type=0).error_code == 0,
            within=20,
            what="a coordinator",
        )
        committed = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
        wait_until(
            lambda: (
                wire.call("OffsetCommit", 7, group_id="g", topics=committed).topics[0].partitions[0].error_code == 0
            ),
            within=20,
            what="a commit",
        )


def open_files() -> Counter[str]:
    """What this process's descriptors are, without their numbers."""
    found: Counter[str] = Counter()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found[str(link.readlink())] += 1
    return found


async def test_a_broker_can_be_used_from_a_running_loop() -> None:
    async with Broker() as broker, AsyncAdmin(broker.bootstrap_servers) as admin:
        await asyncio.gather(*(admin.create_topics([f"topic-{number}"]) for number in range(5)))
        assert len(await admin.list_topics()) == 5


def test_settings_are_given_by_keyword_or_by_kafkas_name() -> None:
    with (
        Broker(num_partitions=3, properties={"message.max.bytes": "1000"}) as broker,
        Admin(broker.bootstrap_servers) as admin,
    ):
        (created,) = admin.create_topics(["orders"])
        assert created.partitions == 3
        assert admin.describe_configs("orders")["max.message.bytes"].value == "1000"


def test_a_wrong_setting_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions=0"):
        Broker(num_partitions=0)


def test_a_directory_of_the_caller_is_kept_and_used_again(tmp_path: Path) -> None:
    for expected in ([], ["orders"]):
        with Broker(directory=tmp_path) as broker, Admin(broker.bootstrap_servers) as admin:
            assert admin.list_topics() == expected
            if not expected:
                admin.create_topics(["orders"])
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with Broker(directory=tmp_path), pytest.raises(NodeError, match="is locked by another broker"):
        Broker(directory=tmp_path).start()


def test_a_broker_can_be_started_again_after_it_stopped(tmp_path: Path) -> None:
    broker = Broker(directory=tmp_path)
    for _ in range(3):
        with broker, Admin(broker.bootstrap_servers) as admin:
            assert len(admin.describe_cluster().brokers) == 1


def test_a_broker_that_runs_is_not_started_again_and_goes_on() -> None:
    before = set(threading.enumerate())
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        address = broker.bootstrap_servers
        with pytest.raises(RuntimeError, match=f"the broker is running already, at {address}"):
            broker.start()
        admin.create_topics(["orders"])
        assert (admin.list_topics(), broker.bootstrap_servers) == (["orders"], address)
        assert broker.directory.exists()
    assert not broker.directory.exists()
    assert set(threading.enumerate()) - before == set()


def test_a_broker_with_a_temporary_directory_begins_anew_after_a_stop() -> None:
    broker = Broker()
    for _ in range(2):
        with broker, Admin(broker.bootstrap_servers) as admin:
            assert admin.list_topics() == []
            admin.create_topics(["orders"])
        assert not broker.directory.exists()


def test_of_two_brokers_on_one_directory_the_second_leaves_the_first_alone(tmp_path: Path) -> None:
    other = Broker(directory=tmp_path)
    with Broker(directory=tmp_path) as one, Admin(one.bootstrap_servers) as admin:
        with pytest.raises(NodeError, match="is locked by another broker"):
            other.start()
        other.stop()
        admin.create_topics(["orders"])
        assert admin.list_topics() == ["orders"]
    with other, Admin(other.bootstrap_servers) as admin:
        assert admin.list_topics() == ["orders"], "one that failed to start can be started later"
