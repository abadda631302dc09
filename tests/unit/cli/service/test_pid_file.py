from __future__ import annotations

import os
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


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="there is no directory"):
        PidFile(tmp_path / "nowhere" / "pid")
