"""`pybroker log-dirs --verify` and `--damage`: what they print, and their exit statuses for scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pybroker.cli.main import main
from pybroker.storage.losses import REPORT_NAME
from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.wire import Wire, produce, produced

BATCHES = 20


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a broker that was stopped: one log of two segments and some."""
    directory = tmp_path / "data"
    with (
        Broker(directory=directory, properties={"log.segment.bytes": "1048576"}) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.call("CreateTopics", 7, topics=[{"name": "t", "num_partitions": 1, "replication_factor": 1}])
        for number in range(BATCHES):
            assert produced(wire.query(produce("t", batch_of(b"%04d" % number * 25_000)))).error_code == 0
    return directory


def flip(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[2000] ^= 1
    path.write_bytes(whole)


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_whole_files_are_status_0(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    assert main(["log-dirs", "--verify", "--data", str(data)]) == 0
    line = capsys.readouterr().out
    assert line.startswith("whole: ")
    assert " logs, " in line
    assert main(["log-dirs", "--verify", "--override", f"log.dirs={data}", "--json"]) == 0
    found = printed(capsys)
    assert (found["version"], found["whole"], found["complete"], found["findings"]) == (1, True, True, [])
    assert found["batches"] >= BATCHES
    assert found["bytes"] >= BATCHES * 100_000
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before, "nothing is written"


def test_damage_is_status_1_and_names_the_file(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = min(data.glob("t-0/*.log"))
    flip(segment)
    assert main(["log-dirs", "--verify", "--data", str(data)]) == 1
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"damage: {segment}: ")
    assert last.startswith("damaged: ")
    assert main(["log-dirs", "--verify", "--data", str(data), "--json"]) == 1
    found = printed(capsys)
    assert found["whole"] is False
    assert {finding["path"] for finding in found["findings"] if finding["severity"] == "damage"} == {str(segment)}


@pytest.mark.parametrize("arguments", [["--data", "/not/there"], [], ["--override", "log.dirs="]])
def test_what_cannot_be_looked_at_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log-dirs", "--verify", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1


def test_the_directory_of_a_running_broker_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(directory=tmp_path / "data"):
        assert main(["log-dirs", "--verify", "--data", str(tmp_path / "data")]) == 2
    assert str(tmp_path / "data") in capsys.readouterr().err


def test_what_a_start_found_missing_is_listed_with_the_files_that_keep_it(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log-dirs", "--damage", "--data", str(data)]) == 0
    assert capsys.readouterr().out == "no start has found damage\n"
    segment = max(path for path in data.glob("t-0/*.log") if path.stat().st_size > 2000)
    flip(segment)
    (data / ".kafka_cleanshutdown").unlink()
    (data / "recovery-point-offset-checkpoint").unlink()
    with Broker(directory=data):
        pass
    assert main(["log-dirs", "--damage", "--data", str(data), "--json"]) == 0
    (log,) = printed(capsys)["logs"]
    assert log["log"] == str(data / "t-0")
    assert [report["text"] for report in log["reports"]]
    assert sum(file["bytes"] for file in log["setAside"]) > 0
    assert main(["log-dirs", "--damage", "--data", str(data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"set aside: {data / 't-0'}") for line in lines)


def test_damage_of_what_is_no_log_directory_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    (other / "dbus-1").mkdir(parents=True)
    refusal = f"pybroker log-dirs: {other}: not a log directory, as it has no meta.properties\n"
    for form in ([], ["--json"]):
        assert main(["log-dirs", "--damage", "--data", str(other), *form]) == 2
        assert capsys.readouterr() == ("", refusal)


def test_damage_is_listed_where_the_identity_is_lost_and_beside_another_directory(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"time_ms": 0, "cause": "torn-write", "from_offset": 1, "bytes": 2, "set_aside": [], "text": "two bytes"}
    (data / "t-0" / REPORT_NAME).write_text(json.dumps(report) + "\n")
    (data / "meta.properties").unlink()
    line = f"1970-01-01T00:00:00Z {data / 't-0'}: two bytes\n"
    assert main(["log-dirs", "--damage", "--data", str(data)]) == 0
    assert capsys.readouterr().out == line
    assert main(["log-dirs", "--damage", "--data", str(data), "--data", str(tmp_path)]) == 2
    refusal = f"pybroker log-dirs: {tmp_path}: not a log directory, as it has no meta.properties\n"
    assert capsys.readouterr() == (line, refusal)
