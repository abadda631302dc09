"""Writes docs/reference from the code: `python docs/generate.py`, `--check` to compare.

Owns which page is made from what, and its form. Knows no content: configuration keys come from their declarations, the
APIs from the handlers' registrations and data sheets, the diagrams from the machines' transition tables.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import pybroker
from pybroker.cli.command_tree import Option, read_commands
from pybroker.cli.main import COMMANDS
from pybroker.client.settings import (
    AdminSettings,
    ConnectionSettings,
    ConsumerSettings,
    FetcherSettings,
    ProducerSettings,
)
from pybroker.config import reference
from pybroker.handlers import registry
from pybroker.metrics.metric import Kind
from pybroker.metrics.registry import METRICS
from pybroker.security.requirements import NothingRequired, Requirements

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = Path(pybroker.__file__).resolve().parent
MADE_BY = "Made by `make docs`; do not edit.\n"

CLIENTS: dict[str, type[ConnectionSettings]] = {
    "Every client": ConnectionSettings,
    "Producer, AsyncProducer": ProducerSettings,
    "Admin, AsyncAdmin": AdminSettings,
    "Fetcher, AsyncFetcher, ColumnFetcher, and every consumer": FetcherSettings,
    "Consumer, AsyncConsumer": ConsumerSettings,
}
CLIENT_SETTINGS = """\
Names, types, ranges and defaults are those of Kafka's clients unless a description states otherwise. A constructor
checks all settings before it connects. It raises `SettingError`, a ValueError, for the first wrong setting:

- an unknown key: the error names the nearest known key. For librdkafka's name of a key, it names Kafka's;
- a value of a wrong type or out of range, and values that exclude each other;
- a value that this client cannot honour: the column *valid* lists the allowed values;
- key and trust stores that cannot be read, and incomplete credentials. No message contains a secret.

*Accepted* keys are checked and have no effect. The logger `pybroker.client` logs a WARN if such a key has another
value than the default, and for each key that only other kinds of clients have."""

COMMANDS_WORDS = """\
The options are read from the parsers. Every command has `--help`. `pybroker man DIR` writes this page as manual
pages.

With `--json` a command prints one JSON document to standard output. This page shows its shape: each value is the
name of its JSON type, with `|null` if it may be null. A list contains the shape of its items. A key in angle
brackets stands for any name. An error is a line on standard error, and an exit status other than 0. Colours are
printed to terminals only, unless the environment contains `NO_COLOR`."""

RIGHTS = """\
The last column contains the ACL operations that an API requires, and the resource types. The list of each API
states whether an operation is required for the whole request, for one of its items, or for items of the response,
and which fields name the resources. Without `authorizer.class.name` every principal is allowed all operations."""


METRICS_WORDS = """\
The metrics that the admin listener serves at `/metrics` ([how to enable it](../guides/metrics.md)), as OpenMetrics.
A counter starts at 0 when the node starts; its `rate()` corresponds to a rate in Kafka. A histogram has the series
`_bucket`, `_count` and `_sum`. The bounds of its buckets are powers of two in microseconds. They are the same on
every broker, so histograms of several brokers can be added. In the histograms of request times, the label `request`
of a Fetch is `FetchFollower` or `FetchConsumer`."""


def configs() -> str:
    """The page of all configuration keys."""
    return "\n".join(reference.lines()) + "\n"


def client_settings() -> str:
    """The page of the clients' settings: what all have, then what each kind has beside it or otherwise."""
    lines = ["# Settings of clients", "", MADE_BY, CLIENT_SETTINGS]
    for title, kind in CLIENTS.items():
        inherited = {} if kind is ConnectionSettings else super(kind, kind).keys
        own = [key for name, key in kind.keys.items() if inherited.get(name) is not key]
        lines += ["", f"## {title}", "", *reference.rows(own)]
    return "\n".join(lines) + "\n"


def apis() -> str:
    """The page of all Kafka APIs: a table, and each handler's data sheet."""
    served = registry.every_api()
    lines = ["# Kafka APIs", "", MADE_BY, RIGHTS, ""]
    lines += [
        "| key | API | versions | listeners of | answered in | operations on resources |",
        "|---|---|---|---|---|---|",
    ]
    for api in served:
        plane = "the data plane (Rust)" if api.in_data_plane else "the control plane (Python)"
        versions = f"{api.min_version}-{api.max_version}"
        link = f"[{_title(api)}](#{_title(api).lower().replace(' ', '-')})"
        lines.append(f"| {api.key} | {link} | {versions} | {_listeners(api)} | {plane} | {_required(api.requires)} |")
    for api in served:
        module = importlib.import_module(f"pybroker.handlers.{api.module}")
        lines += ["", f"## {_title(api)}", "", *_sheet(inspect.getdoc(module) or "")]
        lines += ["", "**Operations on resources**", "", *_rights(api.requires)]
    return "\n".join(lines) + "\n"


def _title(api: registry.RegisteredApi) -> str:
    """The heading of an API: its name, and its listeners where it has another handler for others."""
    others = registry.registered_apis(~api.listeners) if ~api.listeners else {}
    return f"{api.name} of controllers" if api.key in others and not api.in_data_plane else api.name


def _listeners(api: registry.RegisteredApi) -> str:
    """The cell of the table: whose listeners serve it."""
    return ", ".join(f"{role.name.lower()}s" for role in api.listeners if role.name)


def _sheet(docstring: str) -> Iterator[str]:
    """Yield a data sheet as Markdown: its first sentence, then each heading but the key and versions of the table."""
    parts = re.split(r"^([A-Z][a-z ]+)\n(?= )", docstring, flags=re.M)
    about = parts[0].split(": ", 1)[-1].strip()
    yield about[:1].upper() + about[1:]
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        if heading in {"Key", "Versions"}:
            continue
        yield from ("", f"**{heading}**", "", inspect.cleandoc("\n" + body).strip())


def _required(requirements: Requirements) -> str:
    """The cell of the table: each operation and type of resource once."""
    if isinstance(requirements, NothingRequired):
        return "none"
    needed = (f"{one.operation.name} {one.resource_type.name}" for one in requirements)
    return ", ".join(dict.fromkeys(needed))


def _rights(requirements: Requirements) -> Iterator[str]:
    """Yield a list of what an API requires, each with what it is for."""
    if isinstance(requirements, NothingRequired):
        yield f"- None. {requirements.reason}"
        return
    for one in requirements:
        where = f" (`{'`, `'.join(map(str, one.selectors))}`)" if one.selectors else ""
        instead = f", or {one.unless.name} on the cluster" if one.unless else ""
        when = f", when {one.when}" if one.when else ""
        yield f"- For {one.scope.value}: {one.operation.name} on {one.resource_type.name}{where}{instead}{when}."


def commands() -> str:
    """The page of the commands of `pybroker`: options, subcommands, and the documents that `--json` prints."""
    found = list(read_commands(COMMANDS))
    lines = ["# Commands", "", MADE_BY, COMMANDS_WORDS, "", "| command | what it does |", "|---|---|"]
    lines += [f"| [`{command.name}`](#pybroker-{command.name}) | {command.summary} |" for command in found]
    for command in found:
        lines += ["", f"## pybroker {command.name}", "", command.description, ""]
        lines += [f"`{command.usage}`", *_options(command.options)]
        for subcommand in command.subcommands:
            lines += ["", f"### {subcommand.name}", "", f"`{subcommand.usage}`: {subcommand.summary}"]
            lines += _options(subcommand.options)
        for action, shape in command.documents.items():
            title = f"The document of `{action} --json`:" if action else "The document of `--json`:"
            lines += ["", title, "", "```json", json.dumps(shape, indent=2), "```"]
    return "\n".join(lines) + "\n"


def _options(options: Sequence[Option]) -> Iterator[str]:
    if options:
        yield from ("", "| option | what it does |", "|---|---|")
    for one in options:
        words = [f"`{spelling}{' ' if one.value else ''}{one.value}`" for spelling in one.spellings] or [
            f"`{one.value}`"
        ]
        needed = " (required)" if one.required and one.spellings else ""
        cells = (", ".join(words), f"{one.words}{needed}")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def states() -> str:
    """The page of state diagrams: one for each table named TRANSITIONS."""
    lines = ["# States", "", MADE_BY, "One diagram for each transition table; what is not drawn cannot happen."]
    for module in _modules_with_tables():
        table: Mapping[Any, Any] = module.TRANSITIONS
        title = type(next(iter(_sources(table)))).__name__
        path = module.__name__.replace(".", "/") + ".py"
        lines += ["", f"## {title}", "", f"From `{path}`.", "", "```mermaid", "stateDiagram-v2"]
        lines += [f"    {before} --> {after}{event}" for before, after, event in _edges(table)]
        lines.append("```")
    return "\n".join(lines) + "\n"


def _modules_with_tables() -> Iterator[ModuleType]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"^TRANSITIONS\b", path.read_text(encoding="utf-8"), re.M):
            yield importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))


def _sources(table: Mapping[Any, Any]) -> Iterator[Any]:
    for key in table:
        yield key[0] if isinstance(key, tuple) else key


def _edges(table: Mapping[Any, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (before, after, ": event") of a table of (state, event) -> state, or of state -> possible states."""
    for key, value in table.items():
        before, *event = key if isinstance(key, tuple) else (key,)
        afters = sorted(value, key=_name) if isinstance(value, frozenset | set | tuple) else [value]
        for after in afters:
            yield _name(before), _name(after), f": {_name(event[0])}" if event else ""


def _name(value: Any) -> str:
    return value.name if isinstance(value, Enum) else getattr(value, "__name__", str(value))


def metrics() -> str:
    """The page of all metrics: what each means, and which of Kafka's it is."""
    lines = [
        "# Metrics",
        "",
        MADE_BY,
        METRICS_WORDS,
        "",
        "| series | labels | meaning | in Kafka |",
        "|---|---|---|---|",
    ]
    for metric in METRICS:
        series = metric.exposed[0] if metric.kind is not Kind.HISTOGRAM else metric.name
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
        kafka = f"`{metric.kafka.replace('|', chr(92) + '|')}`" if metric.kafka else "none"
        lines.append(f"| `{series}` ({metric.kind.value}) | {labels} | {metric.help} | {kafka} |")
    return "\n".join(lines) + "\n"


PAGES: dict[Path, Callable[[], str]] = {
    REFERENCE / "apis.md": apis,
    REFERENCE / "client-settings.md": client_settings,
    REFERENCE / "commands.md": commands,
    REFERENCE / "configs.md": configs,
    REFERENCE / "metrics.md": metrics,
    REFERENCE / "states.md": states,
}


def main(arguments: list[str]) -> int:
    """Write every page; with `--check` write nothing and name the pages that differ."""
    stale = []
    for path, build in PAGES.items():
        name, content = path.relative_to(ROOT), build()
        if path.exists() and path.read_text(encoding="utf-8") == content:
            continue
        stale.append(str(name))
        if arguments != ["--check"]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
            print(name)
    if arguments == ["--check"] and stale:
        print(f"what is made from the code is behind it ({', '.join(stale)}): run make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
