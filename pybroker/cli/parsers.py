"""Parsers of commands, one by one and all together, and what they say of a misspelt option.

Owns the form of a parser. Must not know the list of commands, or import one that is not needed.
"""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

_NEAR = 0.6
"""Minimum similarity of two names, from 0 to 1, for a suggestion."""

TAKE_ANY_WORD = frozenset(
    (
        "acls",
        "broker-api-versions",
        "client-metrics",
        "configs",
        "console-consumer",
        "console-producer",
        "consumer-groups",
        "consumer-perf-test",
        "delegation-tokens",
        "delete-records",
        "dump-log",
        "e2e-latency",
        "get-offsets",
        "groups",
        "leader-election",
        "log-dirs",
        "reassign-partitions",
        "replica-verification",
        "streams-groups",
        "topics",
    )
)
"""Commands whose options take the next word as their value, in any case: Kafka parses them with JOpt Simple.

Kafka parses its other tools with argparse4j, which rejects a value that begins with `-` as argparse does.
"""


OPTIONAL_VALUES: Mapping[str, frozenset[str]] = {
    "acls": frozenset(("--command-config",)),
    "delegation-tokens": frozenset(
        ("--max-life-time-period", "--renew-time-period", "--expiry-time-period", "--hmac"),
    ),
    "reassign-partitions": frozenset(("--bootstrap-server", "--bootstrap-controller")),
}
"""By command of that kind, the options whose value is optional in Kafka's tool and required here.

JOpt Simple parses a word behind them that begins with `-` as another option, unless they take a number and the word
is one. Options whose value is optional here too are declared with `nargs="?"`.
"""


class CommandParser(argparse.ArgumentParser):
    """A parser that suggests the nearest option for an unknown one, also beside other errors."""

    _words: Sequence[str] = ()
    takes_any_word = False
    """Whether the word behind an option with one value is the value, even if the word begins with `-`."""
    optional_values: frozenset[str] = frozenset()
    """The exceptions from that rule."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse, which returns unknown words."""
        self._words = [] if args is None else [str(word) for word in args]
        if args is not None and self.takes_any_word:
            args = self._join_values(self._words)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print usage and message and exit; suggests an option for each unknown one."""
        known = options_of(self)
        unknown = [word.partition("=")[0] for word in self._words if word.startswith("--") and word != "--"]
        hints = {word: nearest(word, known) for word in unknown if word not in known}
        found = [f"is {hint} meant by {word}?" for word, hint in hints.items() if hint is not None]
        super().error("; ".join((message, *found, *self._dashed_values(known))))

    def _join_values(self, words: Sequence[str]) -> list[str]:
        """Return the words with each value that begins with `-` joined to its option, as `--topic=-x`."""
        joined: list[str] = []
        rest = iter(words)
        for word in rest:
            if word == "--":
                return [*joined, word, *rest]
            takes_any = self._has_one_value(word) and word not in self.optional_values
            if takes_any and (value := next(rest, None)) is not None:
                # argparse drops `--` as a value, so it stays a word of its own.
                joined += [f"{word}={value}"] if value.startswith("-") and value != "--" else [word, value]
            else:
                joined.append(word)
        return joined

    def _dashed_values(self, known: Sequence[str]) -> Iterator[str]:
        """Yield a suggestion for each value that begins with `-` and is no option, where argparse rejects it."""
        for option, word in zip(self._words, self._words[1:], strict=False):
            if self.takes_any_word and option not in self.optional_values:
                continue
            if self._has_one_value(option) and self._is_dashed(word) and word.partition("=")[0] not in known:
                yield f"write {option}={word} if {word} is the value of {option}"

    def _has_one_value(self, option: str) -> bool:
        action = self._option_string_actions.get(option)
        return action is not None and action.nargs is None and option.startswith("--")

    def _is_dashed(self, word: str) -> bool:
        return word.startswith("-") and word not in ("-", "--") and not self._negative_number_matcher.match(word)


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that is nearest to another, None where none is near."""
    near = get_close_matches(name.lower(), known, n=1, cutoff=_NEAR)
    return near[0] if near else None


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return every spelling of an option of a parser and of its subcommands."""
    found = [one for action in parser._actions for one in action.option_strings]
    for _, subcommand in subparsers_of(parser):
        found += options_of(subcommand)
    return list(dict.fromkeys(found))


def subparsers_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the subcommands of a parser with their primary names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            seen: set[int] = set()
            for name, subcommand in action.choices.items():
                if id(subcommand) not in seen:
                    seen.add(id(subcommand))
                    yield name, subcommand


def module_of(command: str) -> ModuleType:
    """Import and return the module of a command."""
    return import_module(f"pybroker.cli.{command.replace('-', '_')}")


def build_parser(command: str, module: Any) -> CommandParser:
    """Return the parser of one command."""
    parser = CommandParser(prog=f"pybroker {command}", description=module.DESCRIPTION, allow_abbrev=False)
    parser.takes_any_word = command in TAKE_ANY_WORD
    parser.optional_values = OPTIONAL_VALUES.get(command, frozenset())
    module.add_arguments(parser)
    return parser


def build_whole_parser(commands: Mapping[str, str]) -> CommandParser:
    """Return a parser with every command as a subcommand; it imports all of them."""
    parser = CommandParser(prog="pybroker", description="Kafka without the JVM.", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version and end")
    subcommands = parser.add_subparsers(metavar="COMMAND")
    for name, what in commands.items():
        module = module_of(name)
        module.add_arguments(
            subcommands.add_parser(name, help=what, description=module.DESCRIPTION, allow_abbrev=False)
        )
    return parser
