from __future__ import annotations

import subprocess
import sys

import pytest

from pybroker import __version__
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
