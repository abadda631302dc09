from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pybroker.cli.command_tree import Command, Option
from pybroker.cli.main import COMMANDS, main
from pybroker.cli.man import page


def test_every_command_has_a_page_that_groff_takes(tmp_path: Path) -> None:
    assert main(["man", str(tmp_path / "man1")]) == 0
    pages = sorted((tmp_path / "man1").iterdir())
    assert [path.name for path in pages] == sorted(["pybroker.1", *(f"pybroker-{name}.1" for name in COMMANDS)])
    assert "\\fB\\-\\-bootstrap\\-server\\fR \\fIHOST:PORT\\fR" in (tmp_path / "man1/pybroker-topics.1").read_text()
    groff = shutil.which("groff")
    if groff is not None:
        ran = subprocess.run(
            [groff, "-man", "-ww", "-z", "-Tutf8", *pages], capture_output=True, text=True, timeout=60, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")


def test_words_cannot_become_requests() -> None:
    option = Option((), "'FILE'", ".so /etc/passwd", False)
    text = page(Command("x", "it is so", "'a", (option,), (), {"": {"a": "b\\"}}))
    assert not [line for line in text.splitlines() if line.startswith((".so", "'"))]
    assert "b\\e\\e" in text


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["man", str(tmp_path / "file" / "man1")]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err
