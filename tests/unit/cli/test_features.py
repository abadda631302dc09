from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.cli.main import main
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def features(*arguments: str) -> int:
    return main(["features", *arguments])


def test_levels_are_shown_lowered_and_raised(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--bootstrap-server", server)
    assert features(*at, "describe") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == sorted(line.split()[1] for line in lines)
    assert any(line.startswith(f"Feature: {'metadata.version':<40}  SupportedMinVersion: 3.3-IV3") for line in lines)
    assert features(*at, "upgrade", "--feature", "group.version=1", "--dry-run") == 0
    assert capsys.readouterr().out == "group.version can be upgraded to 1.\n"
    assert features(*at, "disable", "--feature", "group.version") == 0
    assert capsys.readouterr().out == "group.version was disabled.\n"
    assert features(*at, "upgrade", "--feature", "group.version=1") == 0
    assert capsys.readouterr().out == "group.version was upgraded to 1.\n"
    assert features(*at, "upgrade", "--feature", "group.version=9") == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("Could not upgrade group.version to 9. ")
    assert printed.err == "pybroker features: 1 out of 1 operation(s) failed.\n"


def test_a_release_is_asked_for_with_all_that_it_has(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The log names the voters afterwards: the settings of the node do so at first."""
    assert features("--bootstrap-server", server, "upgrade", "--release-version", "4.0") == 0
    assert capsys.readouterr().out.splitlines() == [
        "group.version was upgraded to 1.",
        "kraft.version was upgraded to 1.",
        "metadata.version was upgraded to 25.",
        "transaction.version was upgraded to 2.",
    ]
    assert features("--bootstrap-server", server, "downgrade", "--feature", "kraft.version=0") == 1
    assert "The metadata log names the voters of the quorum, which it goes on to do." in capsys.readouterr().out


def test_releases_and_needs_are_known_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert features("version-mapping", "--release-version", "4.0") == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=25 (4.0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=0",
        "share.version=0",
        "streams.version=0",
    ]
    assert features("feature-dependencies", "--feature", "eligible.leader.replicas.version=1") == 0
    assert capsys.readouterr().out.splitlines() == [
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["describe"], "You must specify either --bootstrap-controller or --bootstrap-server."),
        (["version-mapping", "--release-version", "2.1"], "Unknown metadata.version '2.1'. Supported metadata.version"),
        (["feature-dependencies", "--feature", "x.y=1"], "Unknown feature: x.y"),
        (["feature-dependencies", "--feature", "group.version=7"], "No feature:group.version with feature level 7"),
        (["--bootstrap-server", "a:1", "upgrade"], "You must specify at least one feature to upgrade"),
        (["--bootstrap-server", "a:1", "upgrade", "--feature", "x"], "equals sign not found"),
        (["--bootstrap-server", "a:1", "upgrade", "--feature", "x=y"], "unable to parse y as a short"),
        (["--bootstrap-server", "a:1", "disable", "--feature", "x", "--feature", "x"], "specified more than once"),
        (
            ["--bootstrap-server", "a:1", "upgrade", "--release-version", "4.0", "--feature", "x=1"],
            "Can not specify `release-version` with other feature flags.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert features(*arguments) == 1
    assert words in capsys.readouterr().err
