from __future__ import annotations

import pytest

from pybroker.cli.main import main


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
