"""`pybroker format` beside `kafka-storage format`: the same lines, refusals and files, and each reads the other's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.bootstrap import read_bootstrap
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot
from pybroker.storage.log_dirs.meta_properties import read_meta_properties
from pybroker.testing import Broker
from tests.support import kafka_tools
from tests.support.java_oracle import JavaOracle, running

pytestmark = pytest.mark.java

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
VOTERS = "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg,2@example.org:9094:MvDxzVmcRsaTz33bUuRU6A"
BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}
BROKER = BOTH | {"process.roles": "broker", "node.id": "3", "listeners": "PLAINTEXT://:9092"}
WITH_VOTERS = BOTH | {"controller.quorum.bootstrap.servers": "", "controller.quorum.voters": "1@localhost:9093"}


@pytest.fixture(scope="module")
def oracle() -> Iterator[JavaOracle]:
    with running("FormatOracle") as started:
        yield started


def settings(directory: Path, given: dict[str, str]) -> str:
    directory.mkdir(exist_ok=True)
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in given.items()) + f"log.dirs={directory}/data\n")
    return str(path)


def by_kafka(oracle: JavaOracle, directory: Path, given: dict[str, str], *options: str) -> tuple[int, str, str]:
    words = ["format", "-t", CLUSTER, "-c", settings(directory, given), *options]
    response = oracle.query("run", words=words)
    return response["status"], response["printed"], response["fault"]


def by_us(
    capsys: pytest.CaptureFixture[str], directory: Path, given: dict[str, str], *options: str
) -> tuple[int, str, str]:
    status = main(["format", "-t", CLUSTER, "-c", settings(directory, given), *options])
    printed = capsys.readouterr()
    return status, printed.out, printed.err.removeprefix("pybroker format: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (BOTH, ("--standalone", "-r", "4.0")),
        (BOTH, ("--initial-controllers", VOTERS, "-r", "4.0")),
        (BROKER, ("-I", VOTERS, "-f", "metadata.version=25")),
        (BROKER, ("-N", "-r", "4.0-IV0")),
        (WITH_VOTERS, ("-r", "3.9")),
    ],
)
def test_both_tools_print_and_write_the_same(
    given: dict[str, str],
    options: tuple[str, ...],
    oracle: JavaOracle,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    theirs, ours = tmp_path / "kafka", tmp_path / "pybroker"
    status, printed, _ = by_kafka(oracle, theirs, given, *options)
    assert status == 0
    expected = printed.replace(str(theirs), str(ours))
    assert by_us(capsys, ours, given, *options) == (0, expected, "")
    written = [read_meta_properties(directory / "data") for directory in (theirs, ours)]
    assert all(meta is not None for meta in written)
    assert len({meta[:2] for meta in written if meta}) == 1
    records = [read_bootstrap(directory / "data") or [] for directory in (theirs, ours)]
    assert records[0] == records[1]
    snapshots = [newest_snapshot(directory / "data" / DIRECTORY_NAME) for directory in (theirs, ours)]
    assert [snapshot is None for snapshot in snapshots] == [
        "standalone" not in str(options) and VOTERS not in options
    ] * 2
    if VOTERS in options:
        first, second = (snapshot.voters for snapshot in snapshots if snapshot)
        assert first == second


REFUSED: list[tuple[dict[str, str], tuple[str, ...]]] = [
    (BOTH, ()),
    (BROKER, ("-s",)),
    (WITH_VOTERS, ("-s",)),
    (WITH_VOTERS, ("-f", "kraft.version=1")),
    (BOTH, ("-s", "-f", "kraft.version=0")),
    (BOTH, ("-s", "-f", "group.version=9")),
    (BOTH, ("-s", "-f", "group.version")),
    (BOTH, ("-s", "-r", "4.0", "-f", "metadata.version=25")),
    (BOTH, ("-s", "-r", "3.9", "-f", "eligible.leader.replicas.version=1")),
    (BOTH, ("-I", "")),
    (BOTH, ("-I", "1@h:1")),
    (BOTH, ("-I", "1@h:99999:JEXY6aqzQY-32P5TStzaFg")),
]


@pytest.mark.parametrize(("given", "options"), REFUSED, ids=str)
def test_both_tools_refuse_in_the_same_words(
    given: dict[str, str],
    options: tuple[str, ...],
    oracle: JavaOracle,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    theirs = by_kafka(oracle, tmp_path / "kafka", given, *options)
    ours = by_us(capsys, tmp_path / "pybroker", given, *options)
    assert (theirs[:2], ours[:2]) == ((1, ""), (1, ""))
    assert ours[2].startswith(theirs[2])


def test_kafka_shows_whose_our_directories_are(
    oracle: JavaOracle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert by_us(capsys, tmp_path, BOTH, "-s")[0] == 0
    path = settings(tmp_path, BOTH)
    shown = oracle.query("run", words=["info", "-c", path])
    assert (main(["storage-info", "-c", path]), capsys.readouterr().out) == (shown["status"], shown["printed"])
    assert shown["status"] == 0


def test_kafkas_dump_tool_reads_what_a_cluster_begins_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_us(capsys, tmp_path, BOTH, "-I", VOTERS)
    snapshot = newest_snapshot(tmp_path / "data" / DIRECTORY_NAME)
    assert snapshot is not None
    dumped = kafka_tools.run("dump-log", "--cluster-metadata-decoder", "--files", str(snapshot.path)).stdout
    assert "KRaftVoters" in dumped
    assert '"voterId":2' in dumped
    assert '"kRaftVersion":1' in dumped


@pytest.mark.parametrize("options", [("-r", "4.0", "-f", "group.version=0"), ()], ids=["4.0", "the newest"])
def test_a_broker_starts_on_a_directory_that_kafka_formatted(
    options: tuple[str, ...], oracle: JavaOracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert by_kafka(oracle, tmp_path, WITH_VOTERS, *options)[0] == 0
    with caplog.at_level("INFO"), Broker(directory=tmp_path / "data", properties={"node.id": "1"}) as broker:
        assert broker.bootstrap_servers
    assert f"leading cluster {CLUSTER}" in caplog.text
