"""Starts that cannot be, and stops: one line that says what and where, a status that is not 0, nothing partial left."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import signal
import socket
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.processes import PROGRAM, BrokerProcess, NotStartedError, free_port
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


def contents(directory: Path) -> set[str]:
    """Every path below a directory."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def suspend(broker: BrokerProcess) -> None:
    """Stop every thread of a broker, which keeps its locks and its sockets."""
    broker.signal(signal.SIGSTOP)
    wait_until(lambda: is_suspended(broker), within=60, what="it is suspended")


def is_suspended(broker: BrokerProcess) -> bool:
    """Whether every thread of a process is stopped."""
    try:
        threads = [(it / "status").read_text() for it in Path(f"/proc/{broker.pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread has ended meanwhile
        return False
    return all("\nState:\tT" in status for status in threads)


def refusal(broker: BrokerProcess) -> str:
    """The one line with which a broker refuses to start."""
    with pytest.raises(NotStartedError) as refused:
        broker.start()
    assert refused.value.status not in {0, -signal.SIGKILL, -signal.SIGSEGV}
    lines = [line for line in refused.value.log.splitlines() if line.startswith("pybroker start:")]
    assert len(lines) == 1, refused.value.log
    assert "Traceback" not in refused.value.log
    return lines[0]


def create(wire: Wire, name: str) -> None:
    """Create a topic of one partition."""
    made = wire.call(
        "CreateTopics", 7, topics=[{"name": name, "num_partitions": 1, "replication_factor": 1}], timeout_ms=10_000
    )
    assert made.topics[0].error_code == 0


def test_a_node_of_a_cluster_that_was_not_formatted_is_refused(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    """Kafka's server.properties names bootstrap servers: the node could be one of many, with another cluster's id."""
    given = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
    }
    line = refusal(make_broker(**given))
    assert line.startswith("pybroker start: No readable meta.properties files found. (have you run `pybroker format`")
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_is_named(make_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal(make_broker(listeners=f"PLAINTEXT://127.0.0.1:{port}"))
    assert str(port) in line
    assert re.search(r"in use", line)
    assert not (tmp_path / "data").exists()


def test_a_directory_that_another_broker_holds_is_named(
    broker: BrokerProcess, make_broker: Callable[..., BrokerProcess]
) -> None:
    # A broker that runs writes its first checkpoints five seconds after its start.
    suspend(broker)
    before = contents(broker.directory)
    line = refusal(make_broker(broker.directory))
    assert str(broker.directory) in line
    assert f"{broker.pid}" in line
    assert contents(broker.directory) == before
    broker.signal(signal.SIGCONT)
    with Wire(broker.bootstrap_servers) as wire:
        assert wire.call("ApiVersions", 0).error_code == 0


def test_a_directory_that_is_a_file_is_named(make_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    (tmp_path / "data").write_text("precious")
    assert str(tmp_path / "data") in refusal(make_broker())
    assert (tmp_path / "data").read_text() == "precious"


def test_a_directory_below_a_file_is_named(make_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    assert str(tmp_path / "file") in refusal(make_broker(log_dirs=str(tmp_path / "file" / "data")))


def drop_the_right_to_read_everything() -> None:
    """Make root subject to permissions again, in a child before it becomes the broker."""
    prctl = ctypes.CDLL(None).prctl
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def test_a_directory_without_permission_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "meta.properties").write_text("version=1\n")
    directory.chmod(0)
    drop = drop_the_right_to_read_everything if os.geteuid() == 0 else None
    try:
        with_no_rights = BrokerProcess(directory, before_exec=drop)
        line = refusal(with_no_rights)
    finally:
        directory.chmod(0o700)
    assert str(directory) in line
    assert "ermission" in line
    assert contents(directory) == {"meta.properties"}


def test_a_directory_of_something_else_is_left_alone(make_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "holiday.jpg").write_text("precious")
    assert str(directory) in refusal(make_broker())
    assert contents(directory) == {"holiday.jpg"}


def test_a_directory_of_another_node_is_named(make_broker: Callable[..., BrokerProcess]) -> None:
    first = make_broker(node_id="1").start()
    assert first.terminate() == 0
    before = contents(first.directory)
    line = refusal(make_broker(first.directory, node_id="2"))
    assert str(first.directory) in line
    assert contents(first.directory) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num.network.threads", "many"),
        ("num.network.threads", "0"),
        ("log.segment.bytes", "-1"),
        ("listeners", "PLAINTEXT//nowhere"),
        ("message.timestamp.type", "Never"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path, key: str, value: str
) -> None:
    key = {"message.timestamp.type": "log.message.timestamp.type"}.get(key, key)
    line = refusal(make_broker(**{key.replace(".", "_"): value}))
    assert key in line
    assert value in line
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("arguments", [["--config", "/nowhere/server.properties"], ["--override", "no-equals-sign"]])
def test_wrong_options_are_reported_in_one_line(arguments: list[str]) -> None:
    ran = subprocess.run([PROGRAM, "start", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode not in {0, None}
    assert len(ran.stderr.splitlines()) == 1
    assert arguments[1] in ran.stderr


def test_sigterm_stops_cleanly_and_the_next_start_recovers_nothing(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "kept")
        assert produced(wire.query(produce("kept", batch_of(b"a", b"b")))).error_code == 0
        topic_id = wire.call("Metadata", 12, topics=[{"name": "kept"}]).topics[0].topic_id
    assert broker.terminate() == 0
    assert (broker.directory / ".kafka_cleanshutdown").exists()
    assert (broker.directory / "recovery-point-offset-checkpoint").read_text().splitlines()[2:] == ["kept 0 2"]
    already_logged = len(broker.log)

    broker.start()
    assert not (broker.directory / ".kafka_cleanshutdown").exists()
    assert "recover" not in broker.log[already_logged:].lower()
    with Wire(broker.bootstrap_servers) as wire:
        assert wire.call("Metadata", 12, topics=[{"name": "kept"}]).topics[0].topic_id == topic_id
        part = fetched(wire.query(fetch("", version=13, topic_id=topic_id)))
        assert (part.error_code, part.high_watermark) == (0, 2)


def test_deleted_topics_stay_deleted_and_leave_no_directory(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "gone")
        create(wire, "kept")
        deleted = wire.call("DeleteTopics", 6, topics=[{"name": "gone"}], timeout_ms=10_000).responses[0]
        assert deleted.error_code == 0
    assert broker.terminate() == 0
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert [topic.name for topic in wire.call("Metadata", 12, topics=None).topics] == ["kept"]
    assert [path for path in broker.directory.iterdir() if path.name.startswith("gone")] == []


def test_a_closed_terminal_stops_cleanly(tmp_path: Path) -> None:
    terminal, its_end = os.openpty()

    def take_the_terminal() -> None:
        os.setsid()
        fcntl.ioctl(its_end, termios.TIOCSCTTY, 0)
        os.dup2(its_end, 2)

    with BrokerProcess(tmp_path / "data", before_exec=take_the_terminal) as broker:
        os.close(its_end)
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "kept")
            assert produced(wire.query(produce("kept", batch_of(b"a")))).error_code == 0
        os.close(terminal)
        assert broker.wait() == 0
        assert (broker.directory / ".kafka_cleanshutdown").exists()


def test_a_shell_that_repeats_sighup_does_not_make_a_crash_of_it(broker: BrokerProcess) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "kept")
        broker.signal(signal.SIGHUP)
        broker.signal(signal.SIGHUP)
        assert broker.wait() == 0
    assert (broker.directory / ".kafka_cleanshutdown").exists()


def test_nohup_keeps_a_broker_without_its_terminal(tmp_path: Path) -> None:
    def ignore_the_terminal() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with BrokerProcess(tmp_path / "data", before_exec=ignore_the_terminal) as broker:
        broker.signal(signal.SIGHUP)
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "kept")
        assert broker.terminate() == 0


def unbuffered(directory: Path, port: int, stdout: int) -> subprocess.Popen[str]:
    """A broker under PYTHONUNBUFFERED=1, as in most container images."""
    program = [str(PROGRAM), "start", "--override", f"listeners=PLAINTEXT://127.0.0.1:{port}"]
    return subprocess.Popen(
        [*program, "--override", f"log.dirs={directory}"],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def serves_until_sigterm(process: subprocess.Popen[str], port: int) -> str:
    """Check that a broker serves and that SIGTERM ends it with status 0; returns its log."""
    try:
        wait_until(
            lambda: is_open(port) or process.poll() is not None, within=60, what="the broker serves or has ended"
        )
        with Wire(f"127.0.0.1:{port}") as wire:
            create(wire, "kept")
        process.terminate()
        _, logged = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, logged
    return logged


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def test_a_broker_serves_when_the_reader_of_its_ready_line_closes_the_pipe(tmp_path: Path) -> None:
    port = free_port()
    reading, writing = os.pipe()
    process = unbuffered(tmp_path / "data", port, writing)
    os.close(writing)
    try:
        # The line arrives in one read: it is one write.
        line = os.read(reading, 4096)
    finally:
        os.close(reading)
    logged = serves_until_sigterm(process, port)
    assert re.fullmatch(rb"pybroker \S+ ready: PLAINTEXT://127\.0\.0\.1:\d+ data \S+\n", line), line
    assert "Traceback" not in logged


def test_a_broker_serves_without_a_reader_of_its_ready_line(tmp_path: Path) -> None:
    port = free_port()
    reading, writing = os.pipe()
    os.close(reading)
    process = unbuffered(tmp_path / "data", port, writing)
    os.close(writing)
    logged = serves_until_sigterm(process, port)
    assert "Cannot write the ready line to standard output: Broken pipe. The broker continues." in logged


def test_sigterm_does_not_wait_for_waiting_clients(broker: BrokerProcess) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "quiet")
        wire.send(fetch("quiet", max_wait_ms=60_000, min_bytes=1))
        assert broker.terminate() == 0
        wire.socket.settimeout(60)
        assert wire.is_closed_by_peer() or wire.socket.recv(1 << 16)


def test_pybroker_stop_ends_the_broker_of_a_directory(broker: BrokerProcess) -> None:
    ran = subprocess.run(
        [PROGRAM, "stop", "--data", broker.directory], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert broker.wait() == 0
    again = subprocess.run(
        [PROGRAM, "stop", "--data", broker.directory], capture_output=True, text=True, timeout=60, check=False
    )
    assert again.returncode != 0
    assert str(broker.directory) in again.stderr


def test_a_broker_that_was_suspended_goes_on(broker: BrokerProcess) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "patient")
        suspend(broker)
        waiting = [produce("patient", batch_of(b"%d" % number)) for number in range(20)]
        numbers = [wire.send(made) for made in waiting]
        broker.signal(signal.SIGCONT)
        offsets = [produced(wire.receive(made, n)).base_offset for made, n in zip(waiting, numbers, strict=True)]
    assert offsets == list(range(20))


def test_starts_many_times_and_keeps_everything(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker()
    for run in range(5):
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, f"topic-{run}")
            for earlier in range(run + 1):
                response = produced(wire.query(produce(f"topic-{earlier}", batch_of(b"run-%d" % run))))
                assert (response.error_code, response.base_offset) == (0, run - earlier)
        if run % 2:
            broker.kill()
        else:
            assert broker.terminate() == 0
