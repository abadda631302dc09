"""`pybroker stop`: signals the broker of a data directory to stop, and waits until it has.

Owns options and waiting. The broker is found by the lock on its directory, never by a name: the process that owns the
lock is signalled.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.storage.log_dirs.log_directory import holder_of

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Stop the broker of a data directory with SIGTERM, and wait until its process has ended."

_POLL_INTERVAL_S = 0.02


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="the server.properties the broker was started with"
    )
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting that overrides the file"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the broker's data directory, instead of --config")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="how long to wait (default: 60)")


def run(arguments: argparse.Namespace) -> int:
    """Signal the broker and return 0 when it has ended."""
    directory = _directory(arguments)
    pid = _holder(directory)
    if pid is None:
        raise CommandError(f"no broker is running on {directory}")
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return 0
    except PermissionError:
        raise CommandError(f"process {pid}, the broker of {directory}, belongs to another user") from None
    deadline = time.monotonic() + arguments.timeout
    while _holder(directory) == pid:
        if time.monotonic() > deadline:
            raise CommandError(f"process {pid} is still stopping after {arguments.timeout:g} s")
        time.sleep(_POLL_INTERVAL_S)
    return 0


def _directory(arguments: argparse.Namespace) -> Path:
    if arguments.data is not None:
        return Path(arguments.data).absolute()
    try:
        return BrokerConfig.from_properties(arguments.config, arguments.override).log_directories[0]
    except ConfigError as error:
        raise CommandError(str(error)) from None


def _holder(directory: Path) -> int | None:
    try:
        return holder_of(directory)
    except OSError as error:
        raise CommandError(f"{directory} cannot be checked: {error.strerror}") from None
