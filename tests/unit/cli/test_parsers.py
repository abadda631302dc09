from __future__ import annotations

import pytest

from pybroker.cli.main import COMMANDS, main
from pybroker.cli.parsers import build_whole_parser, options_of, subparsers_of


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["topics", "--bootstrap-server", "x", "--list", "--toipc", "a"], "is --topic meant by --toipc?"),
        (["topics", "--bootstrap-server", "x", "--lst"], "is --list meant by --lst?"),
        (["cluster", "status", "--dta=x"], "is --data meant by --dta?"),
        (["config", "print", "--overide", "a=b"], "is --override meant by --overide?"),
    ],
)
def test_a_misspelt_option_names_the_nearest(
    capsys: pytest.CaptureFixture[str], arguments: list[str], hint: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err.splitlines()[-1]


def test_an_option_that_is_like_no_other_gets_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["random-uuid", "--zzzzz"])
    assert "meant" not in capsys.readouterr().err


def test_the_whole_parser_has_every_command_with_its_options() -> None:
    parser = build_whole_parser(COMMANDS)
    found = dict(subparsers_of(parser))
    assert found.keys() == COMMANDS.keys()
    assert "--under-replicated-partitions" in options_of(found["topics"])
    assert "--include-fenced-brokers" in options_of(found["cluster"]), "a subcommand's"
    assert all(command.description for command in found.values())
