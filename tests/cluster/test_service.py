"""A broker as a service: in the background, watched by a manager, reloaded, and its log rolled."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.conditions import wait_until
from tests.support.processes import PROGRAM
from tests.support.wire import Wire

pytestmark = pytest.mark.process


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening


def log_of(path: Path) -> list[dict[str, str]]:
    """Every line of a log and of what was rolled of it."""
    texts = (file.read_text() for file in sorted(path.parent.glob(path.name + "*")))
    return [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]


def start(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `pybroker start`, which returns with -d."""
    given = {**os.environ, **environment}
    return subprocess.run(
        [PROGRAM, "start", *arguments], env=given, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_daemon_is_ready_reloaded_and_stopped(tmp_path: Path, manager: socket.socket) -> None:
    properties, log, pid_file = tmp_path / "server.properties", tmp_path / "b.log", tmp_path / "pid"
    properties.write_text(
        f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/data\nssl.key.password=hidden-word\n"
    )
    files = ("--log-file", str(log), "--log-format", "json", "--log-file-bytes", "1500", "--pid-file", str(pid_file))
    ran = start("-daemon", str(properties), *files, environment={"NOTIFY_SOCKET": manager.getsockname()})
    assert (ran.returncode, ran.stderr) == (0, "")
    ready = re.fullmatch(r"pybroker \S+ ready: PLAINTEXT://(\S+) data \S+\n", ran.stdout)
    assert ready is not None
    pid = int(pid_file.read_text())
    try:
        reported = manager.recv(1000).decode().splitlines()
        assert reported == ["READY=1", f"MAINPID={pid}", f"STATUS=listening on PLAINTEXT://{ready[1]}"]
        assert os.getsid(pid) not in (pid, os.getsid(0)), "it has no terminal and can get none"
        with Wire(ready[1]) as wire:
            assert wire.call("ApiVersions", 0).error_code == 0
        again = start("-d", "-c", str(properties), *files[:2], environment={})
        assert again.returncode == 1
        assert again.stderr.startswith("pybroker start: log directory ")
        assert pid_file.read_text() == f"{pid}\n"

        with properties.open("a") as file:
            file.write("message.max.bytes=54321\nnum.network.threads=2\nsocket.listen.backlog.size=7\n")
        log.rename(tmp_path / "moved.log")
        os.kill(pid, signal.SIGHUP)
        assert manager.recv(1000).startswith(b"RELOADING=1")
        assert manager.recv(1000).startswith(b"READY=1")
        with Wire(ready[1]) as wire:
            requested = [{"resource_type": 4, "resource_name": "1", "configuration_keys": ["message.max.bytes"]}]
            (result,) = wire.call("DescribeConfigs", 4, resources=requested).results
            assert [(one.value, one.config_source) for one in result.configs] == [("54321", 4)]
        words = [line["message"] for line in log_of(log)]
        assert "SIGHUP: log file reopened; applied settings: message.max.bytes, num.network.threads" in words
        assert "Resized network threads to 2 from 3" in words
        assert "SIGHUP: these settings need a restart: socket.listen.backlog.size" in words

        os.kill(pid, signal.SIGTERM)
        assert manager.recv(1000).startswith(b"STOPPING=1")
        wait_until(lambda: not pid_file.exists(), within=60, what="the broker has stopped")
    finally:
        if pid_file.exists():
            os.kill(pid, signal.SIGKILL)
    lines = log_of(log) + log_of(tmp_path / "moved.log")
    assert {"INFO", "WARN"} <= {line["level"] for line in lines} <= {"INFO", "WARN", "ERROR"}
    (settings,) = [line["message"] for line in lines if "settings that are not defaults" in line["message"]]
    assert "ssl.key.password=[hidden]" in settings
    assert f"log.dirs={tmp_path}/data" in settings
