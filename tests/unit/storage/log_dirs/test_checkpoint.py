from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.storage.errors import CorruptCheckpointError
from pybroker.storage.log_dirs.checkpoint import read_checkpoint, write_checkpoint


def test_what_is_written_is_read(tmp_path: Path) -> None:
    offsets = {("orders", 0): 1042, ("or-ders.1", 12): 0}
    write_checkpoint(tmp_path / "c", offsets)
    assert read_checkpoint(tmp_path / "c") == offsets


def test_the_form_is_kafkas(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {("orders", 0): 1042})
    assert (tmp_path / "c").read_text() == "0\n1\norders 0 1042\n"


def test_no_file_is_no_offsets(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path / "c") == {}


DIGITS = b"9" * 5000


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na x 1\n", b"0\nx\n", b"\xff\xfe"),
        *(b"0\n" + DIGITS, b"0\n1\na 0 " + DIGITS, b"0\n1\na " + DIGITS + b" 0"),
    ],
)
def test_a_file_of_another_form_is_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(CorruptCheckpointError, match="expected"):
        read_checkpoint(tmp_path / "c")
