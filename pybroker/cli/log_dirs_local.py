"""`pybroker log-dirs --verify` and `--damage`: directories of this machine, checked without a broker.

Owns options, output and the exit status: 0 for no damage, 1 for damage, 2 for an incomplete check. Must not implement
the checks.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.storage.errors import DirectoryError
from pybroker.storage.log_dirs.meta_properties import FILE_NAME
from pybroker.storage.log_dirs.partition_directory import METADATA_DIRECTORY, find_partitions
from pybroker.storage.losses import Report, read_reports
from pybroker.storage.native import set_aside_files
from pybroker.storage.verification import verify_directories

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from pybroker.storage.verification import Verification

WHOLE, DAMAGED, NOT_CHECKED = 0, 1, 2
"""Exit statuses."""

_VERSION = 1


def add_local_arguments(parser: argparse.ArgumentParser, what: argparse._MutuallyExclusiveGroup) -> None:
    """Declare the options."""
    what.add_argument(
        "--verify",
        action="store_true",
        help="check every file of a stopped broker and change none; status 0: no damage, 1: damage, 2: not checked",
    )
    what.add_argument(
        "--damage",
        action="store_true",
        help="list losses found at starts of the broker, and files that were set aside",
    )
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="the broker's server.properties")
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting that overrides the file"
    )
    parser.add_argument(
        "--data", type=Path, action="append", default=[], metavar="DIR", help="a log directory, instead of --config"
    )
    parser.add_argument("--json", action="store_true", help="print only one line of JSON")


def verify(arguments: argparse.Namespace) -> int:
    """Check the directories, print the findings, and return the status."""
    paths, metadata = _directories(arguments)
    begun = time.monotonic()
    try:
        found = verify_directories(paths, metadata)
    except DirectoryError as error:
        raise CommandError(str(error), NOT_CHECKED) from None
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}", NOT_CHECKED) from None
    if arguments.json:
        print(_as_json(found))
    else:
        for finding in found.findings:
            print(f"{finding.severity}: {finding.path}: {finding.text}")
        print(_summary(found, time.monotonic() - begun))
    if found.damaged:
        return DAMAGED
    return WHOLE if found.complete else NOT_CHECKED


class _LogDamage(NamedTuple):
    """Damage of a log that starts have found, and the names and sizes of the files that they have set aside."""

    log: Path
    reports: list[Report]
    files: list[tuple[str, int]]


def show_damage(arguments: argparse.Namespace) -> int:
    """Print the damage that starts have found in each log, and the files that were set aside. Returns 0.

    Raises CommandError, after the output for other directories, where one is not a log directory.
    """
    paths, metadata = _directories(arguments)
    try:
        found = {path: list(_find_damage(find_partitions(path))) for path in paths}
        is_there = (metadata / METADATA_DIRECTORY).is_dir()
        of_metadata = list(_find_damage([metadata / METADATA_DIRECTORY] if is_there else []))
        # Where logs are damaged a broker has run, and the file that records the damage may be lost too.
        others = [path for path in paths if not found[path] and not (path / FILE_NAME).exists()]
    except OSError as error:
        raise CommandError(f"{error.filename or error} cannot be read: {error.strerror}", NOT_CHECKED) from None
    logs = [log for path in paths for log in found[path]] + of_metadata
    if logs or not others:
        _print_damage(logs, as_json=arguments.json)
    if others:
        raise CommandError(f"{', '.join(map(str, others))}: not a log directory, as it has no {FILE_NAME}", NOT_CHECKED)
    return WHOLE


def _find_damage(logs: Iterable[Path]) -> Iterator[_LogDamage]:
    """Yield the damage of each damaged log. Raises OSError."""
    for log in logs:
        reports, files = read_reports(log), set_aside_files(str(log))
        if reports or files:
            yield _LogDamage(log, reports, files)


def _print_damage(logs: list[_LogDamage], *, as_json: bool) -> None:
    if as_json:
        entries = [
            {
                "log": str(log),
                "reports": [report._asdict() for report in reports],
                "setAside": [{"file": name, "bytes": size} for name, size in files],
            }
            for log, reports, files in logs
        ]
        print(json.dumps({"version": _VERSION, "logs": entries}, separators=(",", ":")))
        return
    for log, reports, files in logs:
        for report in reports:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(report.time_ms / 1000))
            print(f"{when} {log}: {report.text}")
        for name, size in files:
            print(f"set aside: {log / name} ({size} bytes)")
    if not logs:
        print("no start has found damage")


def _directories(arguments: argparse.Namespace) -> tuple[list[Path], Path]:
    """Return the log directories and that of the metadata. Raises CommandError."""
    if arguments.data:
        paths = [Path(path).absolute() for path in arguments.data]
        # Without a configuration the metadata is in its default directory, or in the directory that contains it.
        holders = [path for path in paths if (path / METADATA_DIRECTORY).is_dir()]
        return paths, (holders or paths)[0]
    if arguments.config is None and not arguments.override:
        raise CommandError("name the directories by --data DIR, or the broker's settings by --config FILE", NOT_CHECKED)
    try:
        config = BrokerConfig.from_properties(arguments.config, arguments.override)
    except ConfigError as error:
        raise CommandError(str(error), NOT_CHECKED) from None
    return list(config.log_directories), config.metadata_directory


def _as_json(found: Verification) -> str:
    findings = [
        {"path": str(it.path), "severity": it.severity, "kind": it.kind, "text": it.text} for it in found.findings
    ]
    counts = {"logs": found.logs, "segments": found.segments, "batches": found.batches, "bytes": found.bytes}
    body = {"version": _VERSION, "whole": not found.damaged, "complete": found.complete, **counts, "findings": findings}
    return json.dumps(body, separators=(",", ":"))


def _summary(found: Verification, seconds: float) -> str:
    word = "damaged" if found.damaged else "whole" if found.complete else "not all could be checked"
    return (
        f"{word}: {found.logs} logs, {found.segments} segments, {found.batches} batches, "
        f"{found.bytes / 1_000_000:.1f} MB in {seconds:.2f} s"
    )
