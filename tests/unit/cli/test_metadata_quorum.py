from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from pybroker.cli.errors import CommandError
from pybroker.cli.main import main
from pybroker.cli.metadata_quorum import replication_lines, status_lines
from pybroker.cli.new_controller import read_new_controller
from pybroker.client.administration.quorum import QuorumDescription, QuorumReplica, RaftEndpoint
from pybroker.storage.log_dirs.meta_properties import MetaProperties, id_bytes, random_id, write_meta_properties

LEADER = QuorumReplica(1, bytes(16), 100, 50, 60)
FOLLOWER = QuorumReplica(2, bytes(15) + b"\1", 90, 40, 55)
OBSERVER = QuorumReplica(3, bytes(16), 80, None, None)
QUORUM = QuorumDescription(
    1, 7, 95, (FOLLOWER, LEADER), (OBSERVER,), {1: (RaftEndpoint("C", "a", 1), RaftEndpoint("D", "b", 2))}
)


def test_the_status_is_kafkas() -> None:
    assert status_lines("id", QUORUM) == [
        "ClusterId:              id",
        "LeaderId:               1",
        "LeaderEpoch:            7",
        "HighWatermark:          95",
        "MaxFollowerLag:         10",
        "MaxFollowerLagTimeMs:   5",
        (
            'CurrentVoters:          [{"id": 2, "directoryId": "AAAAAAAAAAAAAAAAAAAAAQ"}, '
            '{"id": 1, "endpoints": ["C://a:1", "D://b:2"]}]'
        ),
        'CurrentObservers:       [{"id": 3}]',
    ]
    unknown = replace(QUORUM, voters=(replace(FOLLOWER, last_caught_up_ms=None), LEADER))
    assert "MaxFollowerLagTimeMs:   -1" in status_lines("id", unknown)
    assert "MaxFollowerLagTimeMs:   0" in status_lines("id", replace(QUORUM, voters=(LEADER,)))


def test_the_replication_is_kafkas() -> None:
    rows = [line.split("\t") for line in replication_lines(QUORUM, None)]
    assert {len(row) for row in rows} == {8}
    assert [[cell.strip() for cell in row] for row in rows[1:]] == [
        ["1", "AAAAAAAAAAAAAAAAAAAAAA", "100", "0", "50", "60", "Leader", ""],
        ["2", "AAAAAAAAAAAAAAAAAAAAAQ", "90", "10", "40", "55", "Follower", ""],
        ["3", "AAAAAAAAAAAAAAAAAAAAAA", "80", "20", "-1", "-1", "Observer", ""],
    ]
    assert "10 ms ago" in replication_lines(QUORUM, 60)[1]
    with pytest.raises(CommandError, match="drift in system clock"):
        replication_lines(QUORUM, 59)


def test_without_a_leader_there_is_a_sentence() -> None:
    with pytest.raises(CommandError, match="no voter leads: the leader is -1"):
        status_lines("id", replace(QUORUM, leader_id=-1))


def settings(tmp_path: Path, **changes: str | None) -> Path:
    """The server.properties of a controller, with these keys otherwise or, for None, not there."""
    keys = {
        "node.id": "4",
        "process.roles": "controller",
        "log.dirs": f"{tmp_path},other",
        "listeners": "CONTROLLER://:9093,INTERNAL://[::1]:9094",
        "advertised.listeners": "CONTROLLER://host:19093",
        "controller.listener.names": "controller,INTERNAL",
        **{name.replace("_", "."): value for name, value in changes.items()},
    }
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in keys.items() if value is not None))
    return file


def test_a_new_controller_is_read_of_its_settings_and_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, directory_id = settings(tmp_path), random_id()
    write_meta_properties(tmp_path, MetaProperties(random_id(), 4, directory_id))
    controller = read_new_controller(file)
    assert (controller.node_id, controller.directory_id) == (4, id_bytes(directory_id))
    arguments = ["--bootstrap-server", "a:1", "--command-config", str(file), "add-controller", "--dry-run"]
    assert main(["metadata-quorum", *arguments]) == 0
    assert capsys.readouterr().out == (
        f"DRY RUN of adding controller 4 with directory id {directory_id} and endpoints: CONTROLLER://host:19093, "
        "INTERNAL://[::1]:9094\n"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"node_id": None}, "node.id not found in configuration file"),
        ({"node_id": "-1"}, "node.id was negative"),
        ({"node_id": "x"}, "node.id=x: expected a whole number"),
        ({"process_roles": "broker"}, "process.roles did not contain 'controller'"),
        ({"log_dirs": None}, "Neither metadata.log.dir nor log.dirs were found"),
        ({}, "Unable to read meta.properties from"),
    ],
)
def test_what_is_no_controller_is_refused(tmp_path: Path, changes: dict[str, str | None], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        read_new_controller(settings(tmp_path, **changes))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["describe"], "One of --status or --replication must be specified with describe sub-command"),
        (["describe", "--status", "--replication"], "Only one of --status or --replication should be specified"),
        (["describe", "--status", "--human-readable"], "only supported along with --replication"),
        (["add-controller"], "You must supply the configuration file of the controller you are adding"),
        (["remove-controller", "-i", "-1", "-d", "A"], "Invalid negative --controller-id: -1"),
        (["remove-controller", "-i", "1", "-d", "AAAA"], "Failed to parse --controller-directory-id: Input string"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["metadata-quorum", "--bootstrap-server", "127.0.0.1:1", *arguments]) == 1
    assert words in capsys.readouterr().err
