"""`pybroker log-cleaner` reads log directories: sizes of segments, the checkpoint, the last passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.storage.compaction.last_passes import CLEANED, FILE_NAME, UNCLEANABLE, LastPass, write_last_passes
from pybroker.storage.log_dirs.checkpoint import CLEANED_OFFSETS, write_checkpoint


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two compacted logs, one of them never cleaned, and one that is not compacted."""
    for name, sizes in (("a-0", {0: 100, 10: 300, 20: 50}), ("b-1", {0: 10, 5: 0}), ("c-0", {0: 7})):
        (tmp_path / name).mkdir()
        for base, size in sizes.items():
            (tmp_path / name / f"{base:020}.log").write_bytes(b"x" * size)
    write_checkpoint(tmp_path / CLEANED_OFFSETS, {("a", 0): 10})
    write_last_passes(
        tmp_path / FILE_NAME,
        {("a", 0): LastPass(CLEANED, 10, 1_700_000_000_000, 12, 900, 100, 80, 9), ("b", 1): LastPass()},
    )
    return tmp_path


def rows(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def test_every_compacted_log_has_a_row(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log-cleaner", "--log-dirs", str(directory)]) == 0
    passed = ["2023-11-14T22:13:20Z", "12", "900", "100", "80", "9"]
    head, *found = rows(capsys.readouterr().out)
    assert head[:3] == ["TOPIC", "PARTITION", "STATE"]
    assert found == [
        ["a", "0", "cleaned", "3", "100", "300", "50", "0.75", "10", *passed],
        ["b", "1", "waiting", "2", "0", "10", "0", "1.00", "0", *"------"],
    ]


def test_topics_can_be_chosen(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_last_passes(directory / FILE_NAME, {("a", 0): LastPass(UNCLEANABLE, 10, 1_700_000_000_000)})
    assert main(["log-cleaner", "--log-dirs", str(directory), "--topic-list", "a,x"]) == 0
    _, *found = rows(capsys.readouterr().out)
    assert [row[:3] + row[9:11] for row in found] == [["a", "0", "uncleanable", "2023-11-14T22:13:20Z", "-"]]


def test_a_directory_that_is_none_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log-cleaner", "--log-dirs", str(tmp_path / "no")]) != 0
    assert "expected a directory" in capsys.readouterr().err
    (tmp_path / CLEANED_OFFSETS).write_text("garbage")
    assert main(["log-cleaner", "--log-dirs", str(tmp_path)]) != 0
    assert CLEANED_OFFSETS in capsys.readouterr().err
