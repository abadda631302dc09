"""Options that do not go together, refused in the words of Kafka's tools.

Owns those words. Must not know which options a command has: each command has the rules of its tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError

if TYPE_CHECKING:
    import argparse


def is_given(arguments: argparse.Namespace, option: str) -> bool:
    """Return whether an option is there; one with a default of its own always is."""
    value = getattr(arguments, option.replace("-", "_"))
    return value is not None and value is not False and value != []


def require(arguments: argparse.Namespace, *options: str) -> None:
    """Check that every option is given; raises CommandError that names the first that is not."""
    for option in options:
        if not is_given(arguments, option):
            raise CommandError(f'Missing required argument "[{option}]"')


def conflict(option: str, other: str) -> CommandError:
    """Return the error that says that two options do not go together."""
    return CommandError(f'Option "[{option}]" can\'t be used with option "[{other}]"')


def refuse_with(arguments: argparse.Namespace, option: str, *others: str) -> None:
    """Check that an option is not given with any of others; raises CommandError that names the first that is."""
    for other in others:
        if is_given(arguments, option) and is_given(arguments, other):
            raise conflict(option, other)
