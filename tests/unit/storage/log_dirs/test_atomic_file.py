"""Small files that are replaced whole, and errors that name them."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pybroker.storage.log_dirs.atomic_file import named, replace_file


def test_a_full_disk_is_reported_with_the_file_that_was_to_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("old")
    (tmp_path / "state.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match=rf"No space left on device: '{path}'$"):
        replace_file(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_keeps_the_file_that_it_names(tmp_path: Path) -> None:
    error = OSError(errno.ENOENT, "No such file or directory", "other")
    assert named(error, tmp_path).filename == "other"
    with pytest.raises(FileNotFoundError, match=r"missing/state\.tmp"):
        replace_file(tmp_path / "missing" / "state", "new")
