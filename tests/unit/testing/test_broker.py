from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.async_admin import AsyncAdmin
from pybroker.config.errors import ConfigError
from pybroker.node import NodeError
from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce, produced


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
    """Of a broker with topics and groups; the kernel's table shows what is open."""
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
        wire.query(produce("t", batch_of(b"x")))
        wait_until(
            lambda: wire.call("FindCoordinator", 2, key="g", key_type=0).error_code == 0,
            within=60,
            what="a coordinator",
        )
        committed = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
        wait_until(
            lambda: (
                wire.call("OffsetCommit", 7, group_id="g", topics=committed).topics[0].partitions[0].error_code == 0
            ),
            within=60,
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


def test_a_wrong_setting_is_reported_at_once() -> None:
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
        with pytest.raises(RuntimeError, match=f"the broker is already running at {address}"):
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


def append(broker: Broker, topic: str = "t") -> int:
    with Wire(broker.bootstrap_servers) as wire:
        response = produced(wire.query(produce(topic, batch_of(b"x"))))
        assert response.error_code == 0
        return response.base_offset


def make_topic(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["t"])


def test_a_restart_keeps_address_data_and_faults(broker: Broker) -> None:
    make_topic(broker)
    address = broker.bootstrap_servers
    assert append(broker) == 0
    fault = broker.fail("Produce", "INVALID_RECORD")
    broker.restart()
    assert broker.bootstrap_servers == address
    with Wire(address) as wire:
        assert [produced(wire.query(produce("t", batch_of(b"x")))).error_code for _ in range(2)] == [87, 0]
    assert fault.fired == 1
    assert append(broker) == 2


def test_while_a_broker_is_stopped_connections_are_refused_and_its_port_is_nobody_elses(broker: Broker) -> None:
    make_topic(broker)
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    with broker.stopped():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((host, int(port)))
    assert append(broker) == 0


def test_an_unreachable_broker_goes_on_and_is_found_again(broker: Broker) -> None:
    make_topic(broker)
    with Wire(broker.bootstrap_servers) as wire:
        with broker.unreachable():
            assert wire.is_closed_by_peer()
            with pytest.raises(ConnectionRefusedError):
                Wire(broker.bootstrap_servers)
        broker.accept_connections()
        assert append(broker) == 0


def test_connections_can_be_closed_at_once(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as one, Wire(broker.bootstrap_servers) as other:
        assert (one.call("ApiVersions", 2).error_code, other.call("ApiVersions", 2).error_code) == (0, 0)
        broker.close_connections()
        assert (one.is_closed_by_peer(), other.is_closed_by_peer()) == (True, True)
    with Wire(broker.bootstrap_servers) as again:
        assert again.call("ApiVersions", 2).error_code == 0


def test_a_reset_leaves_nothing_but_the_address(broker: Broker) -> None:
    make_topic(broker)
    address = broker.bootstrap_servers
    fault = broker.fail("Metadata", "UNKNOWN_SERVER_ERROR", times=None)
    broker.advance(timedelta(days=1))
    broker.reset()
    assert (broker.bootstrap_servers, fault.fired, fault.active) == (address, 0, False)
    with Admin(address) as admin:
        assert admin.list_topics() == []


def test_a_directory_of_the_caller_is_not_reset(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        with pytest.raises(RuntimeError, match="belongs to the caller; delete topics and groups instead"):
            broker.reset()
        make_topic(broker)


def test_what_a_stopped_broker_cannot_do_is_refused() -> None:
    broker = Broker()
    for act in (broker.restart, broker.refuse_connections, broker.close_connections, lambda: broker.advance(1)):
        with pytest.raises(RuntimeError, match=r"is not running; call start\(\)"):
            act()
    broker.stop()


def run(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a program whose temporary files go to `directory`."""
    environment = {**os.environ, "TMPDIR": str(directory)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "ends",
    ["pass", "sys.exit(3)", "raise KeyboardInterrupt", "del broker", "os.kill(os.getpid(), signal.SIGINT)"],
)
def test_a_broker_that_nobody_stops_leaves_no_directory(tmp_path: Path, ends: str) -> None:
    program = f"""
        import os, signal, sys
        from pybroker.testing import Broker

        broker = Broker().start()
        assert os.listdir({str(tmp_path)!r})
        {ends}
    """
    ran = run(program, tmp_path)
    assert list(tmp_path.iterdir()) == [], ran.stderr
    assert ("Traceback" in ran.stderr) == ("raise" in ends or "kill" in ends), ran.stderr


def test_an_interrupted_start_leaves_nothing(tmp_path: Path) -> None:
    program = """
        import os, signal, threading
        from pybroker.node import Node
        from pybroker.testing import Broker

        start = Node.start

        async def interrupted(node):
            os.kill(os.getpid(), signal.SIGINT)
            return await start(node)

        Node.start = interrupted
        before = threading.active_count()
        try:
            Broker().start()
        except KeyboardInterrupt:
            print(os.listdir(os.environ["TMPDIR"]), threading.active_count() - before)
    """
    ran = run(program, tmp_path)
    assert ran.stdout == "[] 0\n", ran.stderr


def test_pytest_that_stops_at_the_first_failure_or_at_an_interrupt_leaves_no_directory(tmp_path: Path) -> None:
    for fails in ("assert False", "raise KeyboardInterrupt"):
        module, temporary = tmp_path / "test_it.py", tmp_path / "temporary"
        module.write_text(f"def test_it(broker):\n    {fails}\n")
        temporary.mkdir()
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(module)]
        ran = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(temporary)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode in (1, 2), ran.stdout
        assert [path for path in temporary.iterdir() if path.name.startswith("pybroker-")] == []
        shutil.rmtree(temporary)


def test_a_forked_child_may_use_the_address_and_nothing_else(tmp_path: Path) -> None:
    """The child ends as a program does, with its exit handlers; the parent's broker and directory stay."""
    program = """
        import os, sys
        from pybroker.testing import Broker
        from tests.support.wire import Wire

        with Broker() as broker:
            child = os.fork()
            if child == 0:
                for name in ("stop", "start", "restart", "close_connections", "fail", "requests"):
                    try:
                        getattr(broker, name)
                    except RuntimeError as error:
                        print(str(error).replace(str(os.getpid()), "CHILD").replace(str(os.getppid()), "PARENT"))
                with Wire(broker.bootstrap_servers) as wire:
                    print(wire.call("ApiVersions", 2).error_code, flush=True)
                import atexit
                atexit._run_exitfuncs()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert broker.directory.exists()
            with Wire(broker.bootstrap_servers) as wire:
                assert wire.call("ApiVersions", 2).error_code == 0
    """
    ran = run(program, tmp_path)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0] == (
        "this Broker was created in process PARENT and cannot be used after fork, in process CHILD: create the Broker "
        "in the child"
    )
    assert lines[-1] == "0"
    assert len(lines) == 7
    assert list(tmp_path.iterdir()) == []
