from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.cli.main import main


def test_a_directory_without_a_broker_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stop", "--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"pybroker stop: no broker is running on {tmp_path}\n"


def test_a_wrong_setting_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stop", "--override", "node.id=x"]) == 1
    assert capsys.readouterr().err.startswith("pybroker stop: node.id=x: expected")
