"""Options take a value that begins with `-` where the options of Kafka's tools take it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from pybroker.cli.main import COMMANDS
from pybroker.cli.parsers import TAKE_ANY_WORD, build_parser, module_of, subparsers_of
from tests.support import kafka_tools, programs

pytestmark = pytest.mark.java

TOOLS = {
    "acls": "acls",
    "broker-api-versions": "broker-api-versions",
    "client-metrics": "client-metrics",
    "configs": "configs",
    "console-consumer": "console-consumer",
    "console-producer": "console-producer",
    "consumer-groups": "consumer-groups",
    "consumer-perf-test": "consumer-perf",
    "delegation-tokens": "delegation-tokens",
    "delete-records": "delete-records",
    "dump-log": "dump-log",
    "e2e-latency": "end-to-end-latency",
    "features": "features",
    "format": "storage",
    "get-offsets": "get-offsets",
    "groups": "groups",
    "leader-election": "leader-election",
    "log-dirs": "log-dirs",
    "metadata-quorum": "metadata-quorum",
    "producer-perf-test": "producer-perf",
    "reassign-partitions": "reassign-partitions",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "storage-info": "storage",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "topics": "topics",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
}
"""Commands, and the tools of Kafka whose options they have."""
NOT_COMPARED = {
    *("completion", "config", "doctor", "log-cleaner", "log-level", "man", "snapshot", "start", "stop", "top"),
    *("random-uuid",),
    *("cluster", "metadata-shell", "verifiable-consumer", "verifiable-producer"),
}
"""Commands that Kafka does not have, one without options, and those whose tools end their JVM at a bad option."""
SUBCOMMANDS_OF_TOOLS = {"format": "format", "storage-info": "info"}
TAKEN = ("bogus is not a recognized option", "unrecognized arguments: '--bogus'")
REFUSED = "expected one argument"


def parsers_of(command: str) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """The parsers of a command that have options, each with the words that lead to it."""
    parser = build_parser(command, module_of(command))
    found: list[tuple[tuple[str, ...], argparse.ArgumentParser]] = [
        ((name,), one) for name, one in subparsers_of(parser)
    ]
    yield from found or [((), parser)]


def options_with_a_value(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if action.nargs in (None, "?") and not isinstance(action, argparse._SubParsersAction):
            yield from (name for name in action.option_strings if name.startswith("--"))


def takes(parser: argparse.ArgumentParser, option: str, capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether a parser of ours takes `-x` as the value of an option, whatever else is missing."""
    for action in parser._actions:
        action.required = False
    for group in parser._mutually_exclusive_groups:
        group.required = False
    capsys.readouterr()
    try:
        _, rest = parser.parse_known_args([option, "-x"])
    except SystemExit:
        return REFUSED not in capsys.readouterr().err
    return "-x" not in rest


def tool_takes(tool: str, *words: str) -> bool | None:
    """Whether a tool of Kafka takes the last word as a value; None where it does not have the option."""
    done = kafka_tools.run(tool, *words, "--bogus")
    printed = " ".join((done.stdout + done.stderr).split())
    if any(text in printed for text in TAKEN):
        return True
    if "x is not a recognized option" in printed or REFUSED in printed:
        return False
    return None


@pytest.mark.parametrize("command", TOOLS)
def test_a_value_that_begins_with_a_dash_is_taken_as_by_the_tool(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    programs.kafka_tools()
    tool, compared = TOOLS[command], 0
    for words, parser in parsers_of(command):
        lead = (SUBCOMMANDS_OF_TOOLS[command],) if command in SUBCOMMANDS_OF_TOOLS else words
        for option in options_with_a_value(parser):
            theirs = tool_takes(tool, *lead, option, "-x")
            if theirs is None:
                continue
            assert takes(parser, option, capsys) == theirs, (words, option)
            compared += 1
    assert compared


def test_every_command_is_compared_or_named() -> None:
    assert TOOLS.keys() == COMMANDS.keys() - NOT_COMPARED
    assert TOOLS.keys() >= TAKE_ANY_WORD
