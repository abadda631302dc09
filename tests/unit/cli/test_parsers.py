from __future__ import annotations

import pytest

from pybroker.cli.main import COMMANDS, main
from pybroker.cli.parsers import CommandParser, build_whole_parser, options_of, subparsers_of


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


@pytest.mark.parametrize(
    ("words", "topic", "rest"),
    [
        (["--topic", "-x"], "-x", []),
        (["--topic", "--list"], "--list", []),
        (["--topic", "--topic", "a"], "--topic", ["a"]),
        (["--topic", "a", "--", "--topic", "-b"], "a", ["--topic", "-b"]),
        (["--topic=-x", "-y"], "-x", ["-y"]),
    ],
)
def test_the_word_behind_an_option_with_a_value_is_its_value(words: list[str], topic: str, rest: list[str]) -> None:
    parser = CommandParser(allow_abbrev=False)
    parser.takes_any_word = True
    parser.add_argument("--topic")
    found, others = parser.parse_known_args(words)
    assert (found.topic, [word for word in others if word != "--"]) == (topic, rest)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--hmac", "-x"], None),
        (["--hmac", "--describe"], None),
        (["--hmac=-x"], "-x"),
        (["--hmac", "x"], "x"),
        (["--period", "-1"], -1),
    ],
)
def test_a_word_with_a_dash_is_no_value_where_kafka_has_the_value_optional(
    words: list[str], found: object, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = CommandParser(allow_abbrev=False)
    parser.takes_any_word = True
    parser.optional_values = frozenset(("--hmac", "--period"))
    parser.add_argument("--hmac")
    parser.add_argument("--period", type=int)
    if found is None:
        with pytest.raises(SystemExit):
            parser.parse_known_args(words)
        assert "argument --hmac: expected one argument" in capsys.readouterr().err
    else:
        parsed, others = parser.parse_known_args(words)
        assert (found in (parsed.hmac, parsed.period), others) == (True, [])


def test_an_option_without_its_value_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["topics", "--bootstrap-server", "x", "--describe", "--topic"])
    assert capsys.readouterr().err.endswith("argument --topic: expected one argument\n")


@pytest.mark.parametrize(
    "words",
    [
        ["transactions", "--bootstrap-server", "x", "describe", "--transactional-id", "-x"],
        ["start", "--override", "-x"],
    ],
)
def test_a_refused_value_that_begins_with_a_dash_is_spelt_as_it_is_taken(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    expected = f"expected one argument; write {words[-2]}=-x if -x is the value of {words[-2]}\n"
    assert capsys.readouterr().err.endswith(expected)


def test_an_option_in_the_place_of_a_value_gets_no_advice(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["start", "--config", "--override", "a=b"])
    assert capsys.readouterr().err.endswith("expected one argument\n")
