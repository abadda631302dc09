"""The file of last passes: what is written is read, and what is damaged is reported with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.storage.compaction.last_passes import CLEANED, LastPass, read_last_passes, write_last_passes
from pybroker.storage.errors import CorruptCheckpointError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "passes"
    assert read_last_passes(path) == {}
    passes = {("a.b-c", 3): LastPass(CLEANED, 42, 1_700_000_000_000, 7, 1000, 10, 5, 1), ("z", 0): LastPass()}
    write_last_passes(path, passes)
    assert read_last_passes(path) == passes
    assert path.read_text().splitlines()[:3] == ["0", "2", "a.b-c 3 cleaned 42 1700000000000 7 1000 10 5 1"]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"1\n0\n", b"0\n1\n", b"0\n1\na 0\n", b"\xff\xfe"),
        *(b"0\n1\na x waiting 0 0 0 0 0 0 0\n", b"0\n1\na 0 waiting 0 0 0 0 0 0 0 0\n"),
    ],
)
def test_damage_is_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "passes"
    path.write_bytes(content)
    with pytest.raises(CorruptCheckpointError):
        read_last_passes(path)
