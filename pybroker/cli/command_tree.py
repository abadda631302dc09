"""Commands as values, read from their parsers: what the reference and the manual pages are made of.

Owns the part of a parser that is used. Must not know the form of a page.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.cli.parsers import build_parser, module_of, subparsers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Option(NamedTuple):
    """An option, or a positional argument."""

    spellings: tuple[str, ...]
    """Empty for a positional argument."""
    value: str
    """The placeholder of its value; empty for an option without one."""
    words: str
    required: bool


class Command(NamedTuple):
    """A command, or a subcommand of one."""

    name: str
    """With the name of its parent command."""
    summary: str
    description: str
    options: tuple[Option, ...]
    subcommands: tuple[Command, ...]
    documents: Mapping[str, Any]
    """The JSON documents of `--json`, by action."""

    @property
    def usage(self) -> str:
        """Return the usage in one line."""
        words = ["pybroker", self.name]
        words += ["[options]"] if any(one.spellings for one in self.options) else []
        words += ["SUBCOMMAND ..."] if self.subcommands else []
        return " ".join((*words, *(one.value for one in self.options if not one.spellings)))


def read_commands(commands: Mapping[str, str]) -> Iterator[Command]:
    """Yield every command of a list of names and summaries; it imports all of them."""
    for name, summary in commands.items():
        module = module_of(name)
        parser = build_parser(name, module)
        yield _command(name, summary, parser, getattr(module, "JSON", {}))


def _command(name: str, summary: str, parser: argparse.ArgumentParser, documents: Mapping[str, Any]) -> Command:
    helps = {
        choice.dest: choice.help or ""
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for choice in action._choices_actions
    }
    subcommands = tuple(
        _command(f"{name} {inner}", helps.get(inner, ""), subparser, {}) for inner, subparser in subparsers_of(parser)
    )
    options = tuple(
        _option(action)
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    )
    return Command(name, summary, parser.description or summary, options, subcommands, documents)


def _option(action: argparse.Action) -> Option:
    words = (action.help or "") % {**vars(action), "prog": "pybroker"}
    return Option(tuple(action.option_strings), _value(action), words, action.required)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    value = action.metavar
    if value is None:
        value = "|".join(map(str, action.choices)) if action.choices is not None else action.dest.upper()
    text = " ".join(value) if isinstance(value, tuple) else value
    if action.nargs in ("?", "*") and not text.startswith("["):
        text = f"[{text}]"
    return f"{text} ..." if action.nargs in ("*", "+") else text
