"""`pybroker config`: the settings of a node before it starts: what they come to, and all that is wrong with them.

Owns options and output. The checks are those of a start, including key stores, certificates and the authorizer. Must
not know single settings, or a running broker: `pybroker configs` queries that.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.config.effective import DEFAULT, FILE, OVERRIDE, Setting, effective_settings
from pybroker.config.errors import ConfigError
from pybroker.config.faults import find_faults
from pybroker.config.properties import parse_overrides, read_lines
from pybroker.config.roles import heartbeat_warning
from pybroker.config.topic import broker_suggestion
from pybroker.net.tls import TlsListeners
from pybroker.node.outbound import Outbound
from pybroker.serving import build_authorizer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from pybroker.config.broker import BrokerConfig

DESCRIPTION = "Print the effective settings of a node, or validate them before a start."

_FAULT = {"setting": "string", "words": "string", "source": "string", "line": "integer|null"}
JSON = {
    "print": [
        {
            "name": "string",
            "value": "string|null",
            "source": "string",
            "line": "integer|null",
            "synonym": "string|null",
            "secret": "boolean",
            "type": "string",
        }
    ],
    "validate": {"valid": "boolean", "faults": [_FAULT], "warnings": [_FAULT]},
}


class _Given(NamedTuple):
    """The settings of the options."""

    file: Path | None
    lines: dict[str, int]
    overrides: dict[str, str]
    texts: dict[str, str]

    def place(self, name: str) -> str:
        """Return the source of a key, as a prefix for a line of output; empty without one."""
        if name in self.overrides:
            return "--override: "
        return f"{self.file}:{self.lines[name]}: " if name in self.lines else ""


class _Finding(NamedTuple):
    """An error or a warning."""

    setting: str
    words: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    shows = subcommands.add_parser("print", allow_abbrev=False, help="print each setting with its value and its source")
    shows.add_argument("--changed", action="store_true", help="only settings of the file and the overrides")
    shows.set_defaults(execute=_print)
    checks = subcommands.add_parser(
        "validate", allow_abbrev=False, help="print every fault; the exit status is 1 if a start would fail"
    )
    checks.set_defaults(execute=_validate)
    for one in (shows, checks):
        one.add_argument("-c", "--config", type=Path, metavar="FILE", help="a server.properties in Kafka's format")
        one.add_argument(
            "--override", action="append", default=[], metavar="KEY=VALUE", help="a setting that overrides the file"
        )
        one.add_argument("properties", nargs="?", type=Path, metavar="FILE", help="the same as --config FILE")
        add_json_option(one)


def run(arguments: argparse.Namespace) -> int:
    """Run a subcommand and return its exit status."""
    return int(arguments.execute(arguments))


def _given(arguments: argparse.Namespace) -> _Given:
    if arguments.properties is not None and arguments.config is not None:
        raise CommandError(f"{arguments.properties}: --config {arguments.config} names the settings already", 2)
    file = arguments.properties or arguments.config
    try:
        read = {} if file is None else read_lines(file)
        overrides = parse_overrides(arguments.override)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    texts = {name: line.text for name, line in read.items()} | overrides
    return _Given(file, {name: line.number for name, line in read.items()}, overrides, texts)


def _print(arguments: argparse.Namespace) -> int:
    given = _given(arguments)
    faults, config = find_faults(given.texts)
    if faults or config is None:
        raise CommandError(f"{faults[0]}; `pybroker config validate` names every fault")
    settings = list(effective_settings(config, given.lines, given.overrides))
    if arguments.changed:
        settings = [one for one in settings if one.name in given.texts]
    if arguments.json:
        print_json([one._asdict() for one in settings])
        return 0
    for one in settings:
        print(f"{one.name}={'' if one.value is None else one.value}  ({_source(one, given.file)})")
    return 0


def _source(setting: Setting, file: Path | None) -> str:
    words = {
        OVERRIDE: "--override",
        FILE: f"{file}:{setting.line}",
        DEFAULT: "default" if setting.value is not None else "no value",
    }.get(setting.source, "default")
    return words if setting.synonym is None else f"{words}, by {setting.synonym}"


def _validate(arguments: argparse.Namespace) -> int:
    given = _given(arguments)
    found, config = find_faults(given.texts)
    faults = [_Finding(fault.name, str(fault)) for fault in found]
    faults += [
        _Finding(name, f"{name}={text}: there is no such setting{_meant(name)}")
        for name, text in given.overrides.items()
        if config is not None and name in config.unknown
    ]
    if config is not None and not faults:
        faults += [_Finding(fault.name, str(fault)) for fault in _material_faults(config)]
    warnings = [] if config is None else list(_warnings(config, given))
    if arguments.json:
        print_json(
            {
                "valid": not faults,
                "faults": [_as_json(one, given) for one in faults],
                "warnings": [_as_json(one, given) for one in warnings],
            }
        )
        return 1 if faults else 0
    for one in faults:
        print(f"{given.place(one.setting)}{one.words}")
    for one in warnings:
        print(f"{given.place(one.setting)}warning: {one.words}")
    what = given.file or "the settings"
    print(f"{what}: {_count(len(faults), 'fault')}, {_count(len(warnings), 'warning')}")
    return 1 if faults else 0


def _material_faults(config: BrokerConfig) -> Iterable[ConfigError]:
    """Yield the errors of files and classes in the settings, which a start reads before it listens."""
    checks = (
        lambda: TlsListeners(config.tls_of_listeners()),
        lambda: Outbound(config),
        lambda: build_authorizer(config),
    )
    for check in checks:
        try:
            check()
        except ConfigError as fault:
            yield fault


def _warnings(config: BrokerConfig, given: _Given) -> Iterable[_Finding]:
    for name in config.unknown:
        if name not in given.overrides:
            yield _Finding(name, f"unknown configuration {name} is ignored{_meant(name)}")
    for name in config.given:
        key = config.keys[name]
        if not key.acts and name in given.texts and getattr(config, key.attribute) != key.default:
            yield _Finding(name, f"{name} is checked and has no effect here")
    heartbeat = heartbeat_warning(config)
    if heartbeat is not None:
        yield _Finding("broker.heartbeat.interval.ms", heartbeat)


def _as_json(finding: _Finding, given: _Given) -> dict[str, str | int | None]:
    line = None if finding.setting in given.overrides else given.lines.get(finding.setting)
    source = OVERRIDE if finding.setting in given.overrides else FILE if line is not None else DEFAULT
    return {"setting": finding.setting, "words": finding.words, "source": source, "line": line}


def _meant(name: str) -> str:
    near = broker_suggestion(name.partition(":")[0])
    return f"; is {near} meant?" if near else ""


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
