"""`pybroker man`: manual pages of all commands, written into a directory.

Owns the form of a page (groff_man(7)). Its content comes from the parsers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker import __version__
from pybroker.cli.command_tree import Command, Option, read_commands
from pybroker.cli.errors import CommandError
from pybroker.cli.main import COMMANDS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

DESCRIPTION = (
    "Write the manual pages pybroker(1), pybroker-start(1) and so on into a directory, such as share/man/man1."
)

_ESCAPES = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "~": "\\(ti", "^": "\\(ha"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="the directory; it is created if it is missing")


def run(arguments: argparse.Namespace) -> int:
    """Write a page for each command and one for pybroker itself, and return 0."""
    directory: Path = arguments.directory
    commands = list(read_commands(COMMANDS))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "pybroker.1").write_text(whole_page(commands), encoding="utf-8")
        for command in commands:
            (directory / f"pybroker-{command.name}.1").write_text(page(command), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from None
    return 0


def whole_page(commands: Sequence[Command]) -> str:
    """Return the page of `pybroker` itself."""
    lines = [*_head("pybroker", "Kafka without the JVM"), ".SH SYNOPSIS", ".B pybroker", ".I COMMAND", "[options]"]
    lines += [".SH COMMANDS"]
    for command in commands:
        lines += [".TP", f".BR pybroker\\-{_text(command.name)} (1)", _line(command.summary)]
    lines += [".SH ENVIRONMENT", ".TP", ".B NO_COLOR", "No colours, on a terminal too."]
    return "\n".join(lines) + "\n"


def page(command: Command) -> str:
    """Return the page of one command."""
    lines = [*_head(f"pybroker-{command.name}", command.summary), ".SH SYNOPSIS", _line(command.usage)]
    lines += [".SH DESCRIPTION", _line(command.description), *_options(command.options, ".SH")]
    for subcommand in command.subcommands:
        lines += [f".SH {_text(subcommand.name).upper()}", _line(subcommand.summary)]
        lines += [*_options(subcommand.options, ".SS")]
    for action, shape in command.documents.items():
        lines += [f".SH JSON {_text(action).upper()}".rstrip(), ".EX"]
        lines += [*(_line(line) for line in json.dumps(shape, indent=2).splitlines()), ".EE"]
    lines += [".SH SEE ALSO", ".BR pybroker (1)"]
    return "\n".join(lines) + "\n"


def _head(name: str, summary: str) -> list[str]:
    title = f'.TH {_text(name).upper()} 1 "" "pybroker {__version__}" "pybroker"'
    return [title, ".SH NAME", f"{_text(name)} \\- {_text(summary)}"]


def _options(options: Sequence[Option], heading: str) -> Iterator[str]:
    for title, some in (
        ("ARGUMENTS", [one for one in options if not one.spellings]),
        ("OPTIONS", [one for one in options if one.spellings]),
    ):
        if some:
            yield f"{heading} {title}"
        for one in some:
            yield ".TP"
            spellings = ", ".join(f"\\fB{_text(spelling)}\\fR" for spelling in one.spellings)
            yield f"{spellings} \\fI{_text(one.value)}\\fR".strip() if one.value else spellings
            yield _line(one.words or "(no words)")


def _text(text: str) -> str:
    return text.translate(_ESCAPES)


def _line(text: str) -> str:
    """Escape a line of text whose dot or quote at the start would make it a groff request."""
    escaped = _text(text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
