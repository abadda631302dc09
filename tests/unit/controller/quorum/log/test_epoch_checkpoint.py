"""The newest epoch beside a closed metadata log; a damaged file counts as none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.controller.quorum.log.epoch_checkpoint import EPOCHS_NAME, NO_EPOCH, read_last_epoch


def test_the_last_line_is_the_newest_epoch(tmp_path: Path) -> None:
    (tmp_path / EPOCHS_NAME).write_text("0\n2\n1 0\n4 17\n")
    assert read_last_epoch(tmp_path) == (4, 17)


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n0\n", b"\xff\n\xff\n\xff \xff\n", b"0\n1\n1\n", b"9" * 5000])
def test_a_damaged_file_has_no_epoch(tmp_path: Path, content: bytes) -> None:
    (tmp_path / EPOCHS_NAME).write_bytes(content)
    assert read_last_epoch(tmp_path) == NO_EPOCH


def test_a_directory_without_the_file_has_no_epoch(tmp_path: Path) -> None:
    assert read_last_epoch(tmp_path) == NO_EPOCH
    (tmp_path / EPOCHS_NAME).mkdir()
    assert read_last_epoch(tmp_path) == NO_EPOCH
