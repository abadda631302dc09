from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from pybroker import __version__
from pybroker.cli.errors import CommandError
from pybroker.cli.main import COMMANDS, main


def test_without_a_command_the_known_commands_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "topics" in capsys.readouterr().err


def test_an_unknown_command_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["burn"]) == 2
    assert capsys.readouterr() == ("", f"pybroker: no command burn; there are {', '.join(COMMANDS)}\n")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("topic", "topics"), ("strat", "start"), ("Stop", "stop"), ("consumergroup", "consumer-groups")],
)
def test_a_misspelt_command_names_the_nearest(capsys: pytest.CaptureFixture[str], name: str, meant: str) -> None:
    assert main([name]) == 2
    assert capsys.readouterr().err.startswith(f"pybroker: no command {name}; is {meant} meant? ")


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_finding_a_command_imports_no_other() -> None:
    code = "import sys; from pybroker.cli.main import main; main(['--version']); print('asyncio' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [__version__, "False"]


def ran(stdout: int | IO[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "pybroker.cli.main", *arguments]
    return subprocess.run(program, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize("arguments", [["random-uuid"], ["config", "print"]])
def test_a_full_disk_is_one_line_and_a_status(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        finished = ran(full, *arguments)
    assert finished.returncode == 1
    assert finished.stderr.startswith(f"pybroker {arguments[0]}: cannot write")
    assert finished.stderr.endswith(": No space left on device\n")
    assert finished.stderr.count("\n") == 1


def broken_pipe() -> int:
    """The end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("arguments", [["random-uuid"], ["config", "print"]])
def test_nothing_is_said_where_the_reader_has_gone(arguments: list[str]) -> None:
    pipe = broken_pipe()
    finished = ran(pipe, *arguments)
    os.close(pipe)
    assert (finished.returncode, finished.stderr) == (1, "")


@pytest.mark.parametrize("name", ["start", "topics"])
def test_a_broken_pipe_that_is_not_standard_output_is_not_swallowed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_arguments: object) -> int:
        raise BrokenPipeError

    command = SimpleNamespace(DESCRIPTION="", add_arguments=lambda _parser: None, run=run)
    monkeypatch.setattr("pybroker.cli.main.module_of", lambda _name: command)
    with pytest.raises(BrokenPipeError):
        main([name])


def test_a_broken_pipe_does_not_end_start_in_silence_where_the_reader_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_arguments: object) -> int:
        raise BrokenPipeError

    command = SimpleNamespace(DESCRIPTION="", add_arguments=lambda _parser: None, run=run)
    monkeypatch.setattr("pybroker.cli.main.module_of", lambda _name: command)
    with os.fdopen(broken_pipe(), "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        with pytest.raises(BrokenPipeError):
            main(["start"])


def test_a_failure_that_follows_from_a_lost_reader_is_not_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_arguments: object) -> int:
        try:
            print("a line", flush=True)
        except OSError:
            raise CommandError("a client could not be closed in order") from None
        return 0

    command = SimpleNamespace(DESCRIPTION="", add_arguments=lambda _parser: None, run=run)
    monkeypatch.setattr("pybroker.cli.main.module_of", lambda _name: command)
    with os.fdopen(broken_pipe(), "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        assert main(["topics"]) == 1
    assert capsys.readouterr().err == ""
