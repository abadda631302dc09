"""What the console commands' options have in common: properties by Kafka's two generations of names (KIP-1147).

Owns the messages about an old name, and about two names for the same option. Must not know particular properties.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybroker.cli.errors import CommandError
from pybroker.config.errors import PropertiesError
from pybroker.config.properties import read_properties

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable


def add_properties(parser: argparse.ArgumentParser, new: str, old: str, what: str) -> None:
    """Declare an option that takes `key=value` and may be repeated, by its new and its old name."""
    parser.add_argument(f"--{new}", action="append", default=[], metavar="K=V", help=what)
    parser.add_argument(f"--{old}", action="append", default=[], metavar="K=V", help=f"deprecated: --{new}")


def add_files(parser: argparse.ArgumentParser, new: str, old: str, what: str) -> None:
    """Declare an option that takes a file of properties, by its new and its old name."""
    parser.add_argument(f"--{new}", type=Path, metavar="FILE", help=what)
    parser.add_argument(
        f"--{old}", type=Path, metavar="FILE", dest=old.replace(".", "_").replace("-", "_"), help=f"deprecated: --{new}"
    )


def given_properties(arguments: argparse.Namespace, new: str, old: str) -> dict[str, str]:
    """Return the pairs given by either name, with unchanged values. Raises CommandError."""
    pairs: list[str] = _either(arguments, new, old) or []
    return parse_pairs(pairs)


def given_file(arguments: argparse.Namespace, new: str, old: str) -> dict[str, str]:
    """Return the pairs of the file given by either name. Raises CommandError."""
    path: Path | None = _either(arguments, new, old)
    return read_file(path)


def read_file(path: Path | None) -> dict[str, str]:
    """Return the pairs of a file, none without one; raises CommandError."""
    try:
        return {} if path is None else read_properties(path)
    except PropertiesError as error:
        raise CommandError(str(error)) from None


def parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Split `key=value` texts into pairs. A value may consist of blanks, so nothing is trimmed. Raises CommandError."""
    parsed = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not key or not sign:
            raise CommandError(f"{pair}: must be key=value")
        parsed[key] = value
    return parsed


def is_true(value: str) -> bool:
    """Whether a boolean property of Kafka's formatters and readers is set."""
    return value.strip().lower() == "true"


def _either(arguments: argparse.Namespace, new: str, old: str) -> Any:
    """Return the value of the given option.

    A warning about the old name goes to standard error, so that pipes stay clean.
    """
    by_new, by_old = (getattr(arguments, name.replace("-", "_").replace(".", "_")) for name in (new, old))
    if by_new and by_old:
        raise CommandError(f"Options --{old} and --{new} cannot be specified together.")
    if by_old:
        warning = f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
        print(warning, file=sys.stderr)
    return by_new or by_old
