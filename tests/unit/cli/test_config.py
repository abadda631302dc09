from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybroker.cli.config import JSON
from pybroker.cli.main import main
from tests.support.json_shapes import shape_fault


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with three faults and two warnings."""
    path = tmp_path / "server.properties"
    path.write_text(
        "node.id=1\nnum.network.threads=0\n# words\nlog.segment.bytes=\\\n  x\nlog.retention.ms=0\nbrker.rack=a\n"
        "log.cleaner.enable=false\n"
    )
    return path


def test_every_fault_is_printed_with_its_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "validate", "-c", str(file), "--override", "listener=x"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("=")[0] for line in lines[:4]] == [
        f"{file}:6: log.retention.ms",
        f"{file}:4: log.segment.bytes",
        f"{file}:2: num.network.threads",
        "--override: listener",
    ]
    assert lines[4].startswith(f"{file}:7: warning: unknown configuration brker.rack is ignored; is broker.rack meant?")
    assert lines[-1].startswith(f"{file}: 4 faults, ")


def test_files_that_a_start_reads_are_judged_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "listeners=SSL://:9093\nssl.keystore.type=PEM\nssl.keystore.location=/nowhere\nauthorizer.class.name=no.such:One\n"
    )
    assert main(["config", "validate", "-c", str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert shape_fault(document, JSON["validate"]) is None
    assert [(one["setting"], one["line"]) for one in document["faults"]] == [
        ("ssl.keystore.location", 3),
        ("authorizer.class.name", 4),
    ]


def test_right_settings_are_printed_with_their_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=7\nssl.key.password=word\nlog.retention.hours=3\n")
    given = ["-c", str(path), "--override", "num.network.threads=4"]
    assert main(["config", "validate", *given]) == 0
    assert capsys.readouterr().out == f"{path}: no faults, no warnings\n"
    assert main(["config", "print", *given]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        f"node.id=7  ({path}:1)",
        "num.network.threads=4  (--override)",
        f"log.retention.ms=3  ({path}:3, by log.retention.hours)",
        f"ssl.key.password=[hidden]  ({path}:2)",
        "num.io.threads=8  (default)",
    ):
        assert line in lines
    assert main(["config", "print", *given, "--changed", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert shape_fault(document, JSON["print"]) is None
    names = [one["name"] for one in document]
    assert names == ["log.retention.hours", "node.id", "num.network.threads", "ssl.key.password"]


def test_a_file_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "print", "-c", "/nowhere"]) == 1
    assert capsys.readouterr().err == "pybroker config: cannot read /nowhere: No such file or directory\n"


def test_a_file_may_be_named_as_at_a_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=7\n")
    assert main(["config", "validate", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: no faults, no warnings\n"
    assert main(["config", "print", str(path), "--changed", "--override", "num.io.threads=4"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"node.id=7  ({path}:1)", "num.io.threads=4  (--override)"]
    assert main(["config", "print", str(path), "-c", "other.properties"]) == 2
    words = f"pybroker config: {path}: --config other.properties names the settings already\n"
    assert capsys.readouterr() == ("", words)
