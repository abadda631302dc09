"""`pybroker completion`: a script that completes commands and options in a shell.

Owns which options take file names. shtab generates the scripts from the parsers, so they match this version.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybroker.cli.errors import CommandError
from pybroker.cli.main import COMMANDS
from pybroker.cli.parsers import build_whole_parser, subparsers_of
from pybroker.config.extras import install_command

if TYPE_CHECKING:
    import argparse

DESCRIPTION = (
    'Print a script that completes commands and options: for bash, `eval "$(pybroker completion bash)"` in ~/.bashrc; '
    "for zsh, as _pybroker in a directory of $fpath; for fish, as ~/.config/fish/completions/pybroker.fish."
)
_SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=_SHELLS, help="the shell")


def run(arguments: argparse.Namespace) -> int:
    """Print the script and return 0."""
    try:
        import shtab
    except ImportError:
        raise CommandError(f"scripts are made by shtab: {install_command('cli')}") from None
    parser = build_whole_parser(COMMANDS)
    _mark_files(parser, shtab.FILE)
    print(shtab.complete(parser, arguments.shell))
    return 0


def _mark_files(parser: argparse.ArgumentParser, mark: Any) -> None:
    for action in parser._actions:
        if action.type is Path:
            action.complete = mark  # type: ignore[attr-defined]  # shtab's
    for _, subcommand in subparsers_of(parser):
        _mark_files(subcommand, mark)
