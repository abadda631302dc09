"""`pybroker cluster`: a cluster on this machine, started in one terminal and acted on in others."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client.administration.admin import Admin
from tests.support.conditions import wait_until

pytestmark = pytest.mark.process


def cluster(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pybroker.cli.main", "cluster", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A cluster of three in the foreground of a process, and where clients find it."""
    command = [sys.executable, "-m", "pybroker.cli.main", "cluster", "start"]
    process = subprocess.Popen(
        [*command, "--brokers", "3", "--port", "0", "--data", str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("bootstrap servers: ")
        yield process, line.removeprefix("bootstrap servers: ").strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()
        cluster("stop", "--data", str(tmp_path))


def test_brokers_are_shown_killed_restarted_and_stopped(
    started: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    process, servers = started
    data = ("--data", str(tmp_path))
    with Admin(servers) as admin:
        assert len(admin.describe_cluster().brokers) == 3
    assert cluster("status", *data).stdout.count("process ") == 3
    assert cluster("kill", "2", *data).returncode == 0
    assert "broker 2" in cluster("status", *data).stdout
    assert "not running" in cluster("status", *data).stdout
    killed = cluster("kill", "2", *data)
    assert (killed.returncode, killed.stderr) == (1, "pybroker cluster: broker 2 is not running\n")
    assert cluster("restart", "2", *data).returncode == 0
    assert cluster("pause", "3", *data).returncode == 0
    wait_until(lambda: "paused" in cluster("status", *data).stdout, within=60, what="a paused broker")
    assert cluster("resume", "3", *data).returncode == 0
    assert cluster("stop", *data).returncode == 0
    assert process.wait(60) == 0
    assert process.stdout is not None
    ended = [line for line in process.stdout.read().splitlines() if "has ended" in line]
    assert ended == ["broker 2 has ended; `pybroker cluster restart 2` starts it"], "the one that was killed"
    assert cluster("status", *data).stdout.count("not running") == 3


def test_restart_waits_for_a_quorum_and_prints_what_it_waits_for(
    started: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    data = ("--data", str(tmp_path))
    for broker in ("1", "2", "3"):
        assert cluster("kill", broker, *data).returncode == 0
    command = [sys.executable, "-m", "pybroker.cli.main", "cluster", "restart", "1", *data]
    # Unbuffered, as in most container images: the ready line is read once.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == (
            "broker 1 waits for a quorum: 1 of 3 controllers run, 2 are needed. Not running or paused: 2, 3; "
            "`pybroker cluster restart 2` starts one\n"
        )
        assert cluster("restart", "2", *data).returncode == 0
        assert waiting.wait(60) == 0
        assert waiting.stdout.read() == ""
    status = cluster("status", *data).stdout
    assert (status.count("process "), status.count("not running")) == (2, 1)


def test_ctrl_c_stops_all_brokers(started: tuple[subprocess.Popen[str], str], tmp_path: Path) -> None:
    process, _ = started
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    assert cluster("status", "--data", str(tmp_path)).stdout.count("not running") == 3


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = cluster("start", "--port", str(port), "--data", str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr == (
        f"pybroker cluster: port {port} of 127.0.0.1 is taken; --port names another one for broker 1, 0 any\n"
    )


def test_a_controllers_port_that_is_taken_is_named_with_its_broker_and_nothing_is_left(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = cluster("start", "--port", str(port - 10_000), "--brokers", "1", "--data", str(directory))
    assert refused.returncode == 1
    assert refused.stderr == (
        f"pybroker cluster: port {port} of 127.0.0.1 is taken, where the controller of broker 1 listens, 10000 above "
        "it; --port names another one for broker 1, 0 any\n"
    )
    assert not directory.exists()


@pytest.mark.parametrize("port", ["55534", "60000", "-1"])
def test_a_port_without_room_for_controllers_is_refused(port: str, tmp_path: Path) -> None:
    """65535 is the last port there is; three controllers end at 55533 + 10000 + 2."""
    refused = cluster("start", "--port", port, "--brokers", "3", "--data", str(tmp_path / "cluster"))
    assert (refused.returncode, refused.stderr) == (
        1,
        f"pybroker cluster: --port {port}: expected a port up to 55533, as controllers listen 10000 above it, or 0\n",
    )
    assert not (tmp_path / "cluster").exists()


def test_the_help_of_start_names_the_ports_of_controllers() -> None:
    assert "controllers 10000 above" in " ".join(cluster("start", "--help").stdout.split())


def test_a_directory_without_a_cluster_is_named(tmp_path: Path) -> None:
    refused = cluster("status", "--data", str(tmp_path / "none"))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"pybroker cluster: there is no cluster in {tmp_path / 'none'}; ")
