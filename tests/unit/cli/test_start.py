from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--override", "num.network.threads=0"], "num.network.threads=0: expected a whole number of at least 1"),
        (["--override", "node.id"], "--override node.id: expected key=value"),
        (["--config", "/nowhere"], "cannot read /nowhere: No such file or directory"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["start", *arguments]) == 1
    assert capsys.readouterr().err == f"pybroker start: {message}\n"


def test_a_directory_that_cannot_be_used_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["start", "--override", f"log.dirs={tmp_path}/file"]) == 1
    assert capsys.readouterr().err == (
        f"pybroker start: log directory {tmp_path}/file: expected a directory, found a file\n"
    )
