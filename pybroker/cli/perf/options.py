"""What the tools' command lines share: Kafka's two generations of option names, and properties.

Kafka 4.2 unified the names (KIP-1147): `--bootstrap-server`, `--command-config FILE`, `--command-property k=v`. The old
names are accepted as well, and the command line overrides a file's settings, as in Kafka's tools.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pybroker.cli.errors import CommandError
from pybroker.client.errors import SettingError
from pybroker.client.settings import ConnectionSettings
from pybroker.config.errors import PropertiesError
from pybroker.config.properties import read_properties


class ToolError(CommandError):
    """A command line or a cluster that a tool cannot use. The message is for the user."""


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--json FILE`, which Kafka's tools do not have."""
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="Also write the figures, the settings and the versions to this file as JSON ('-': standard output).",
    )


def check_file(option: str, path: Path | None) -> None:
    """Check that an option's file can be written, before its content is produced. Raises ToolError."""
    if path is None or str(path) == "-":
        return
    place = path if path.exists() else path.absolute().parent
    if path.is_dir() or not place.exists():
        raise ToolError(f"{option} {path}: must be a file in a directory that is there")
    if not os.access(place, os.W_OK):
        raise ToolError(f"{option} {path}: {place} cannot be written")


def read_command_properties(pairs: Sequence[Sequence[str]] | None) -> dict[str, str]:
    """Parse `k=v` words of options that can be repeated and can take several words each. Raises ToolError."""
    properties = {}
    for pair in (word for words in pairs or () for word in words):
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise ToolError(f"Invalid property: {pair} (it must read key=value)")
        properties[key] = value
    return properties


def read_config_file(path: str | None) -> dict[str, str]:
    """Read a Java properties file; empty without a path. Raises ToolError."""
    if path is None:
        return {}
    try:
        return read_properties(Path(path))
    except PropertiesError as error:
        raise ToolError(str(error)) from None


def warn_of_unknown(settings: type[ConnectionSettings], properties: dict[str, Any]) -> None:
    """Report keys without effect on standard error."""
    for key in settings.without_effect(properties):
        print(f"{key} has no effect on this client", file=sys.stderr)


def check_settings(settings: type[ConnectionSettings], properties: dict[str, Any]) -> None:
    """Reject at once what a later client would reject. Raises ToolError."""
    try:
        settings.check(properties)
    except SettingError as error:
        raise ToolError(f"properties of the client: {error}") from None


def write_json(path: Path | None, document: dict[str, Any]) -> None:
    """Write a tool's results, with the versions of the measured software."""
    if path is None:
        return
    own = {"pybroker": version("pybroker"), "python": platform.python_version()}
    document = {**document, "versions": {**own, **document.get("versions", {})}}
    text = json.dumps(document, indent=1) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        path.write_text(text)
