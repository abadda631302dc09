"""What commands print with `--json`: one JSON document on standard output, and nothing else there.

Owns the option, and the form of the document. Each command declares its documents in its constant `JSON`, from which
docs/reference/commands.md is generated: by action, the value's shape. A shape is the name of a JSON type (`string`,
`integer`, `number`, `boolean`, with `|null` for optional values), a list with the shape of its items, or a mapping with
the shape of each key; the key `<...>` stands for any name. Errors stay lines on standard error.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pybroker.cli.errors import CommandError

if TYPE_CHECKING:
    import argparse

Shape = Any
"""A text, a list of one shape, or a mapping from keys to shapes."""


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument("--json", action="store_true", help="print one JSON document for programs")


def refuse_json(arguments: argparse.Namespace, actions: str) -> None:
    """Reject the option for an action without a document. Raises CommandError with the actions that have one."""
    if arguments.json:
        raise CommandError(f"--json goes with {actions} alone", 2)


def print_json(value: object) -> None:
    """Print a value, with its keys in their order."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
