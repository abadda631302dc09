"""Options that do not go together, refused in the words of Kafka's tools.

Owns those messages. Must not know a command's options: each command has the rules of its tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError

if TYPE_CHECKING:
    import argparse


def is_given(arguments: argparse.Namespace, option: str) -> bool:
    """Return whether an option is given; an option with a default always is."""
    value = getattr(arguments, option.replace("-", "_"))
    return value is not None and value is not False and value != []


def require(arguments: argparse.Namespace, *options: str) -> None:
    """Check that every option is given. Raises CommandError with the first that is missing."""
    for option in options:
        if not is_given(arguments, option):
            raise CommandError(f'Missing required argument "[{option}]"')


def conflict(option: str, other: str) -> CommandError:
    """Return the error about two options that exclude each other."""
    return CommandError(f'Option "[{option}]" can\'t be used with option "[{other}]"')


def refuse_with(arguments: argparse.Namespace, option: str, *others: str) -> None:
    """Check that an option is not combined with others. Raises CommandError with the first that is given."""
    for other in others:
        if is_given(arguments, option) and is_given(arguments, other):
            raise conflict(option, other)
