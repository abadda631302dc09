from __future__ import annotations

import subprocess
import sys

import pytest

from pybroker import __version__
from pybroker.cli.main import COMMANDS, main


def test_no_command_tells_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "topics" in capsys.readouterr().err


def test_an_unknown_command_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic"]) == 2
    assert capsys.readouterr().err == f"pybroker: no command topic; there are {', '.join(COMMANDS)}\n"


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_finding_a_command_imports_no_other() -> None:
    code = "import sys; from pybroker.cli.main import main; main(['--version']); print('asyncio' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [__version__, "False"]
