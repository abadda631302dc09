"""`pybroker format`: what it prints, refuses and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.client.administration.admin import Admin
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.bootstrap import read_bootstrap
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord
from pybroker.storage.log_dirs.meta_properties import MetaProperties, id_bytes, read_meta_properties
from pybroker.testing import Broker

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
ID = "JEXY6aqzQY-32P5TStzaFg"
BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}
BROKER = BOTH | {"process.roles": "broker", "node.id": "2", "listeners": "PLAINTEXT://:9092"}
WITH_VOTERS = BOTH | {"controller.quorum.bootstrap.servers": "", "controller.quorum.voters": "1@localhost:9093"}
SHOWN = (
    "Bootstrap metadata: BootstrapMetadata(records=["
    "ApiMessageAndVersion(FeatureLevelRecord(name='metadata.version', featureLevel=25) at version 0), "
    "ApiMessageAndVersion(FeatureLevelRecord(name='group.version', featureLevel=1) at version 0), "
    "ApiMessageAndVersion(FeatureLevelRecord(name='streams.version', featureLevel=1) at version 0), "
    "ApiMessageAndVersion(FeatureLevelRecord(name='transaction.version', featureLevel=2) at version 0)], "
    "metadataVersionLevel=25, source=format command)\n"
)


class Files:
    """The settings of a node with two directories, and what formatting prints about them."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.first, self.second = path / "a", path / "b"
        self._settings = path / "server.properties"
        self._capsys = capsys

    def format(self, given: dict[str, str], *options: str, cluster: str = CLUSTER) -> tuple[int, str, str]:
        lines = given | {"log.dirs": f"{self.first},{self.second}"}
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        status = main(["format", "-t", cluster, "-c", str(self._settings), *options])
        printed = self._capsys.readouterr()
        return status, printed.out, printed.err

    def metas(self) -> list[MetaProperties | None]:
        return [read_meta_properties(path) for path in (self.first, self.second)]

    def is_untouched(self) -> bool:
        return not self.first.exists() and not self.second.exists()


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


def test_a_first_voter_is_named_in_a_snapshot_of_its_metadata_directory(files: Files) -> None:
    status, out, _ = files.format(BOTH, "--standalone")
    assert (status, out) == (
        0,
        (
            f"{SHOWN}Formatting dynamic metadata voter directory {files.first} with metadata.version 4.0-IV3.\n"
            f"Formatting data directory {files.second} with metadata.version 4.0-IV3.\n"
        ),
    )
    first, second = files.metas()
    assert first is not None
    assert second is not None
    assert (first.cluster_id, first.node_id, second.cluster_id, second.node_id) == (CLUSTER, 1, CLUSTER, 1)
    assert first.directory_id != second.directory_id
    snapshot = newest_snapshot(files.first / DIRECTORY_NAME)
    assert snapshot is not None
    assert snapshot.voters is not None
    (voter,) = snapshot.voters.voters
    assert (voter.voter_id, voter.voter_directory_id) == (1, id_bytes(first.directory_id))
    assert [(one.name, one.host, one.port) for one in voter.endpoints] == [("CONTROLLER", "localhost", 9093)]
    assert not (files.second / DIRECTORY_NAME).exists()
    for path in (files.first, files.second):
        assert read_bootstrap(path) == [
            FeatureLevelRecord(name="metadata.version", feature_level=25),
            FeatureLevelRecord(name="group.version", feature_level=1),
            FeatureLevelRecord(name="streams.version", feature_level=1),
            FeatureLevelRecord(name="transaction.version", feature_level=2),
        ]


def test_the_advertised_address_is_that_of_a_first_voter(files: Files) -> None:
    given = BOTH | {"advertised.listeners": "PLAINTEXT://example.org:1,CONTROLLER://example.org:2"}
    assert files.format(given, "-s")[0] == 0
    snapshot = newest_snapshot(files.first / DIRECTORY_NAME)
    assert snapshot is not None
    assert snapshot.voters is not None
    assert [(one.host, one.port) for one in snapshot.voters.voters[0].endpoints] == [("example.org", 2)]


def test_a_voter_among_others_has_the_directory_id_that_all_know(files: Files) -> None:
    others = f"1@localhost:9093:{ID},2@localhost:9094:MvDxzVmcRsaTz33bUuRU6A"
    assert files.format(BOTH, "-I", others)[0] == 0
    first = files.metas()[0]
    assert first is not None
    assert first.directory_id == ID
    snapshot = newest_snapshot(files.first / DIRECTORY_NAME)
    assert snapshot is not None
    assert snapshot.voters is not None
    assert [voter.voter_id for voter in snapshot.voters.voters] == [1, 2]


@pytest.mark.parametrize(
    ("given", "options", "described"),
    [
        (BROKER, ["-I", f"1@localhost:9093:{ID}"], "dynamic metadata directory"),
        (BROKER, ["-N"], "metadata directory"),
        (BROKER, [], "metadata directory"),
        (BOTH, ["--no-initial-controllers"], "metadata directory"),
        (WITH_VOTERS, [], "metadata directory"),
        ({}, [], "metadata directory"),
    ],
)
def test_a_directory_is_described_by_what_it_holds(
    files: Files, given: dict[str, str], options: list[str], described: str
) -> None:
    status, out, _ = files.format(given, *options)
    assert status == 0
    assert f"Formatting {described} {files.first} with" in out
    assert (files.first / DIRECTORY_NAME).exists() is described.startswith("dynamic")


def test_what_is_formatted_is_left_as_it_is(files: Files) -> None:
    files.format(BOTH, "-s")
    before = files.metas()
    status, _, err = files.format(BOTH, "-s")
    assert status == 1
    assert err.endswith(
        f"Log directory {files.first} is already formatted. Use --ignore-formatted to ignore this directory and format "
        "the others.\n"
    )
    assert files.format(BOTH, "-s", "-g")[:2] == (0, "All of the log directories are already formatted.\n")
    assert files.metas() == before


def test_a_directory_that_was_added_is_formatted_alone(files: Files) -> None:
    files.format(BOTH, "-s")
    before = files.metas()
    (files.second / "meta.properties").unlink()
    (files.second / "bootstrap.checkpoint").unlink()
    status, out, _ = files.format(BOTH, "-s", "-g")
    assert (status, str(files.first) in out) == (0, False)
    after = files.metas()
    assert after[0] == before[0]
    assert after[1] is not None


def test_directories_of_others_are_refused(files: Files) -> None:
    files.format(BOTH, "-s")
    status, _, err = files.format(BOTH, "-s", "-g", cluster="other")
    assert status == 1
    assert f"Invalid cluster.id in: {files.first}/meta.properties. Expected other, but read {CLUSTER}" in err
    _, _, err = files.format(BOTH | {"node.id": "7"}, "-s", "-g")
    assert f"Stored node id 1 doesn't match previous node id 7 in {files.first}/meta.properties. If you moved" in err


def test_a_directory_that_cannot_be_read_is_passed_over(files: Files) -> None:
    files.first.touch()
    status, out, _ = files.format(BOTH, "-s")
    assert status == 0
    assert out.startswith(f"I/O error trying to read log directory {files.first}. Ignoring...\n")
    assert f"Formatting data directory {files.second}" in out


def test_without_any_directory_nothing_is_formatted(files: Files) -> None:
    files.first.touch()
    files.second.touch()
    status, _, err = files.format(BOTH, "-s")
    assert (status, err) == (1, "pybroker format: No available log directories to format.\n")


def test_data_without_an_identity_is_not_given_one(files: Files) -> None:
    files.first.mkdir()
    (files.first / "topic-0").mkdir()
    assert files.format(BOTH, "-s")[0] == 1
    assert sorted(path.name for path in files.first.iterdir()) == ["topic-0"]


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        (BOTH, [], "Because controller.quorum.voters is not set on this controller, you must specify one of the"),
        (BROKER, ["-s"], "You can only use --standalone on a controller."),
        (WITH_VOTERS, ["-s"], "You cannot specify controller.quorum.voters and format the node with"),
        (WITH_VOTERS, ["-I", f"1@localhost:9093:{ID}"], "You cannot specify controller.quorum.voters and format the"),
        ({}, ["-s"], "a quorum needs controller.listener.names and controller.quorum.bootstrap.servers"),
        (BOTH, ["-I", "1"], "No @ found in dynamic voter string."),
        (BOTH, ["-s", "-r", "9"], "Unknown metadata.version '9'."),
        (BOTH, ["-s", "-S", "SCRAM-SHA-256=[password=b]"], "You must supply 'name' to add-scram"),
        (BOTH | {"listeners": "PLAINTEXT://:0,CONTROLLER://:0"}, ["-s"], "expected a port that other nodes can dial"),
        (BOTH | {"node.id": "x"}, ["-s"], "node.id=x: expected a whole number"),
    ],
)
def test_what_contradicts_the_settings_is_refused_before_anything_is_written(
    files: Files, given: dict[str, str], options: list[str], sentence: str
) -> None:
    status, out, err = files.format(given, *options)
    assert (status, out) == (1, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert files.is_untouched()


def test_a_user_of_scram_is_the_clusters_from_its_first_start_on(files: Files) -> None:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0"}
    status, out, err = files.format(given, "-S", "SCRAM-SHA-512=[name=alice,password=secret,iterations=5000]")
    assert (status, err) == (0, "")
    assert "secret" not in out
    (user,) = [one for one in read_bootstrap(files.first) or [] if isinstance(one, UserScramCredentialRecord)]
    assert (user.name, user.mechanism, user.iterations) == ("alice", 2, 5000)
    broker = Broker(directory=files.first)
    with broker, Admin(broker.bootstrap_servers) as admin:
        assert admin.describe_scram_users() == {"alice": {"SCRAM-SHA-512": 5000}}


@pytest.mark.parametrize("cluster", ["", "a b", "a\\b", "a\nnode.id=7", "\u00e4"])
def test_a_cluster_id_that_its_file_could_not_hold_is_refused(files: Files, cluster: str) -> None:
    status, _, err = files.format(BOTH, "-s", cluster=cluster)
    assert (status, "expected ASCII characters without blanks and backslashes" in err) == (1, True)
    assert files.is_untouched()


def test_a_failed_write_leaves_the_directory_unformatted(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pybroker.storage.log_dirs.log_directory.write_meta_properties", refuse)
    status, _, err = files.format(BOTH, "-s")
    assert status == 1
    assert f"Error while writing meta.properties file {files.first}: " in err
    assert files.is_untouched()
