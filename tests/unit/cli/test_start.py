from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.cli.main import main

ONE_AT_LEAST = "a whole number from 1 to 2147483647"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--override", "num.network.threads=0"],
            f"num.network.threads=0: expected {ONE_AT_LEAST}",
        ),
        (["--override", "node.id"], "--override node.id: expected key=value"),
        (
            ["--override", "listener=PLAINTEXT://127.0.0.1:9092"],
            "--override listener=PLAINTEXT://127.0.0.1:9092: there is no such setting; is listeners meant?",
        ),
        (
            ["--override", "listeners:PLAINTEXT=//127.0.0.1:9092"],
            "--override listeners:PLAINTEXT=//127.0.0.1:9092: there is no such setting; is listeners meant?",
        ),
        (
            ["--override", "zookeeper=here:2181"],
            "--override zookeeper=here:2181: there is no such setting",
        ),
        (
            ["--override", "message.max.bytes=99999999999"],
            "message.max.bytes=99999999999: expected a whole number from 0 to 2147483647",
        ),
        *(
            (
                ["--override", f"listeners={text}"],
                f"listeners={text}: expected NAME://host:port, such as PLAINTEXT://localhost:9092",
            )
            for text in (
                "127.0.0.1:9092",
                "PLAINTEXT:127.0.0.1:9092",
                "PLAINTEXT//127.0.0.1:9092",
                "PLAINTEXT:/127.0.0.1:9092",
                "://127.0.0.1:9092",
                "PLAINTEXT://127.0.0.1",
                "PLAINTEXT://127.0.0.1:x",
            )
        ),
        (["--config", "/nowhere"], "cannot read /nowhere: No such file or directory"),
    ],
)
def test_a_wrong_setting_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["start", *arguments]) == 1
    assert capsys.readouterr().err == f"pybroker start: {message}\n"


def test_a_directory_that_cannot_be_used_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["start", "--override", f"log.dirs={tmp_path}/file"]) == 1
    assert capsys.readouterr().err == (
        f"pybroker start: log directory {tmp_path}/file: expected a directory, found a file\n"
    )
