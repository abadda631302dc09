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
            "num.network.threads=0: expected a whole number from 1 to 64",
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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"broker.rack=\xff", "not UTF-8 at byte 12"),
        (b"broker.rack=\\ud800", r"\ud800: expected a pair of surrogates"),
        (None, "Is a directory"),
    ],
)
def test_a_settings_file_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, words: str
) -> None:
    path = tmp_path / "server.properties"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert main(["start", "--config", str(path)]) == 1
    assert capsys.readouterr().err == f"pybroker start: cannot read {path}: {words}\n"


def test_a_directory_that_cannot_be_used_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["start", "--override", f"log.dirs={tmp_path}/file"]) == 1
    assert capsys.readouterr().err == (
        f"pybroker start: log directory {tmp_path}/file: expected a directory, found a file\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-d"], "-d needs --log-file FILE"),
        (["-d", "--log-file", "b.log", "--pid-file", "/nowhere/pid"], "--pid-file /nowhere/pid: there is no directory"),
        (["--log-level", "loud"], "--log-level: Cannot set the log level of root to LOUD"),
        (["--log-file-bytes", "-1"], "--log-file-bytes -1: expected 0 or more"),
        (["--log-files", "-1"], "--log-files -1: expected 0 or more"),
        (["--stop-timeout", "-1"], "--stop-timeout -1: expected seconds"),
        (["--config", "a", "b"], "b: --config a names the settings already"),
    ],
)
def test_a_service_that_cannot_be_is_reported_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["start", *arguments, "--override", f"log.dirs={tmp_path}/data"]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"pybroker start: {words}")
    assert not (tmp_path / "data").exists()
