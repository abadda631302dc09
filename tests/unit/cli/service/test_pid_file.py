from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.service.pid_file import PidFile


def test_a_file_is_this_processs_from_its_writing_to_its_removal(tmp_path: Path) -> None:
    path = tmp_path / "broker.pid"
    path.write_text("1\n")
    PidFile(path).remove()
    assert path.read_text() == "1\n", "another process's"
    PidFile(path).write()
    assert path.read_text() == f"{os.getpid()}\n"
    PidFile(path).remove()
    assert not path.exists()


@pytest.fixture
def start_that_runs() -> Iterator[int]:
    """A process with the command line of a broker, which runs: while `exec` is under way, `/proc` shows none."""
    program = "import sys; print('runs', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, "pybroker", "start", "server.properties"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        yield process.pid
        process.kill()


def test_the_file_of_a_broker_that_runs_is_left_alone(tmp_path: Path, start_that_runs: int) -> None:
    path = tmp_path / "broker.pid"
    path.write_text(f"{start_that_runs}\n")
    with pytest.raises(CommandError, match=f"it has the id of a broker that runs, {start_that_runs}"):
        PidFile(path)
    assert path.read_text() == f"{start_that_runs}\n"


@pytest.mark.parametrize("left", ["1", "4194305", "", "x", "-1"])
def test_what_no_broker_has_left_behind_is_overwritten(tmp_path: Path, left: str) -> None:
    """The id of another process, of none, or no id."""
    path = tmp_path / "broker.pid"
    path.write_text(left)
    PidFile(path).write()
    assert path.read_text() == f"{os.getpid()}\n"


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="there is no directory"):
        PidFile(tmp_path / "nowhere" / "pid")
