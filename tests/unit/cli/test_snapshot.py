from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.cli.snapshot import JSON
from pybroker.client.administration.admin import Admin
from pybroker.testing import Broker
from tests.support.json_shapes import shape_fault


def settings(directory: Path, *more: str) -> list[str]:
    given = (f"log.dirs={directory}", *more)
    return [word for one in given for word in ("--override", one)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a broker that ran, and had a topic."""
    archive = tmp_path_factory.mktemp("saved") / "metadata.tar"
    directory = archive.with_name("data")
    with Broker(directory=directory) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["orders"])
        assert main(["snapshot", "save", *settings(directory), str(archive)]) == 0
        admin.create_topics(["later"])
    return archive


def test_metadata_of_a_running_node_is_restored_into_an_empty_directory(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "data"
    assert saved.stat().st_mode & 0o777 == 0o600
    assert main(["snapshot", "restore", *settings(directory), str(saved), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert shape_fault(document, JSON["restore"]) is None
    with Broker(directory=directory) as broker, Admin(broker.bootstrap_servers) as admin:
        assert admin.list_topics() == ["orders"]
        assert admin.describe_cluster().cluster_id == document["clusterId"]


def test_a_log_that_is_there_is_kept_beside_and_only_when_asked_for(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "data"
    shutil.copytree(saved.with_name("data"), directory)
    assert main(["snapshot", "restore", *settings(directory), str(saved)]) == 1
    assert "--replace renames and keeps it" in capsys.readouterr().err
    assert main(["snapshot", "restore", *settings(directory), str(saved), "--replace"]) == 0
    assert len(list(directory.glob("__cluster_metadata-0.*-replaced"))) == 1
    with Broker(directory=directory) as broker, Admin(broker.bootstrap_servers) as admin:
        assert admin.list_topics() == ["orders"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["node.id=2"], "is of node 1, and the settings are of 2"),
        (
            [
                "process.roles=controller",
                "node.id=1",
                "controller.listener.names=C",
                "listeners=C://127.0.0.1:0",
                "listener.security.protocol.map=C:PLAINTEXT",
                "controller.quorum.voters=1@a:1,2@b:1,3@c:1",
            ],
            "can cause the loss of committed records",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert main(["snapshot", "restore", *settings(tmp_path / "data", *more), str(saved)]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_damaged_archive_changes_nothing(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(saved.read_bytes())
    with tarfile.open(saved) as archive:
        segment = next(member for member in archive if member.name.endswith(".log"))
    content[segment.offset_data + 20] ^= 0xFF
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(content)
    assert main(["snapshot", "restore", *settings(tmp_path / "data"), str(damaged)]) == 1
    assert f"{segment.name} is damaged" in capsys.readouterr().err
    assert list((tmp_path / "data").glob("*")) == []


@pytest.mark.parametrize("content", [b"words", b"", b"\x1f\x8bwords", b"w" * 2000])
def test_what_is_no_archive_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "no.tar"
    path.write_bytes(content)
    assert main(["snapshot", "restore", *settings(tmp_path / "data"), str(path)]) == 1
    words = f"{path} is not a tar archive of `pybroker snapshot save`"
    assert capsys.readouterr() == ("", f"pybroker snapshot: {words}\n")
    assert not (tmp_path / "data").exists()


def test_a_directory_without_metadata_has_nothing_to_save(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "save", *settings(tmp_path), str(tmp_path / "x.tar")]) == 1
    assert f"{tmp_path}: this directory contains no metadata of a node" in capsys.readouterr().err
