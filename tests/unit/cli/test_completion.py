from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pybroker.cli.main import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(path: Path, *words: str) -> set[str]:
    """What bash proposes for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    requested = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _shtab_pybroker"
    code = f"source {path}; {requested}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ran = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def test_bash_completes_commands_subcommands_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "completion"
    path.write_text(script("bash", capsys))
    assert completed(path, "pybroker", "to") == {"topics", "top"}
    assert "list-endpoints" in completed(path, "pybroker", "cluster", "")
    assert completed(path, "pybroker", "topics", "--under-r") == {"--under-replicated-partitions"}
    assert completed(path, "pybroker", "config", "validate", "--ov") == {"--override"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_every_command_and_take_the_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    text = script(shell, capsys)
    for word in ("reassign-partitions", "metadata-quorum", "bootstrap-server"):
        assert word in text
    program = shutil.which(shell)
    if program is not None:
        path = tmp_path / "completion"
        path.write_text(text)
        ran = subprocess.run([program, "-n", path], capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_without_shtab_the_way_to_get_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "pip install 'rich>=13' 'shtab>=1.8'" in capsys.readouterr().err
