from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.testing import Broker


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "Command must include exactly one action: --alter, --delete, --describe or --list."),
        (["--list", "--describe"], "Command must include exactly one action"),
        (["--alter"], "One of --name or --generate-name must be specified with --alter."),
        (["--alter", "--name", "a", "--generate-name"], "One of --name or --generate-name"),
        (["--alter", "--name", "a", "--interval", "x"], "Cannot parse argument 'x' of option interval"),
        (["--delete"], "A client metrics resource name must be specified with --delete."),
        (["--delete", "--name", "a", "--metrics", "b"], 'Option "[delete]" can\'t be used with option "[metrics]"'),
        (["--describe", "--interval", "5"], 'Option "[describe]" can\'t be used with option "[interval]"'),
        (["--list", "--name", "a"], 'Option "[list]" can\'t be used with option "[name]"'),
    ],
)
def test_options_that_do_not_fit_are_refused_as_by_kafkas_tool(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["client-metrics", "--bootstrap-server", "127.0.0.1:1", *options]) == 1
    assert words in capsys.readouterr().err


def test_servers_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["client-metrics", "--list"]) == 1
    assert "--bootstrap-server must be specified." in capsys.readouterr().err


def test_it_is_said_that_no_broker_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=500\nrequest.timeout.ms=500\n")
    assert main(["client-metrics", "--bootstrap-server", "127.0.0.1:1", "--command-config", str(config), "--list"]) == 1
    reported = capsys.readouterr().out
    assert reported.startswith("Error while executing client metrics command : no broker answered: 127.0.0.1:1: ")


def test_documents_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:

        def run(*options: str) -> str:
            assert main(["client-metrics", "--bootstrap-server", broker.bootstrap_servers, *options]) == 0
            return capsys.readouterr().out

        assert json.loads(run("--list", "--json")) == []
        run("--alter", "--name", "s", "--interval", "5000", "--metrics", "a.,b.")
        assert json.loads(run("--list", "--json")) == ["s"]
        (described,) = json.loads(run("--describe", "--json"))
        assert (described["name"], described["configs"]["interval.ms"]) == ("s", "5000")
    assert main(["client-metrics", "--bootstrap-server", "x:1", "--delete", "--name", "s", "--json"]) == 2
    assert "--json goes with --list and --describe alone" in capsys.readouterr().err
