"""Scenarios: what is run, against what it is held, which figure is to be reached. Read from `bench/scenarios/*.toml`.

Knows how a scenario is written, not how it is run.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from pybench.checkout import BENCH
from pybroker.cli.perf.options import ToolError

DIRECTORY = BENCH / "scenarios"
LIMIT = "limit"
"""A baseline that is a number, not a contestant."""
PLAIN_WRITE = "plain write"
"""The contestant that a row with `plain_write` has beside its own."""
BROKERS: Final = "brokers"
SPARK: Final = "spark"
Suite = Literal["brokers", "spark"]
SUITES: tuple[Suite, ...] = (BROKERS, SPARK)
#: msgspec ends its messages with the path of the value, unless it is the document itself.
_PATH = re.compile(r" - at `\$\.?(.*)`$")


class Contestant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One side of a comparison: a load against a broker."""

    name: str
    broker: str
    """`pybroker`, `kafka`, one of either with other settings (`pybench.compare.VARIANTS`), `sink`, or `none`."""
    load: str
    """A name of `pybench.loads.LOADS`."""


class Reach(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a figure of a contestant is to reach, as a ratio to the baseline's or to plain write()."""

    figure: str
    contestant: str
    baseline: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    limit: float | None = None
    """With the baseline `limit`: the value itself that the ratio is taken to; with 0 no round may be above it."""

    def is_met(self, ratio: float) -> bool:
        """Whether a measured ratio reaches it."""
        return (self.at_least is None or ratio >= self.at_least) and (self.at_most is None or ratio <= self.at_most)

    def text(self) -> str:
        """The bound in a table."""
        if self.limit is not None:
            sign = "≤" if self.at_least is None else "≥"
            return f"{sign} {self.limit:g}{' ' + self.note if self.note else ''}"
        bounds = [f"≥ {self.at_least:g}"] if self.at_least is not None else []
        bounds += [f"≤ {self.at_most:.3g}"] if self.at_most is not None else []
        bound = ", ".join(bounds)
        return f"{bound}{' ' + self.note if self.note else ''}"


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the comparison."""

    id: str
    """The file's name, without its suffix; no key of the file."""
    title: str
    contestants: tuple[Contestant, ...]
    reaches: tuple[Reach, ...] = msgspec.field(default=(), name="reach")
    figures: tuple[str, ...]
    """The figures that the report shows, the most important first."""
    records: int
    quick_records: int
    rounds: int = 0
    """Counted rounds that the row has at least, where they scatter more than others; a quick run has its own number."""
    size: int = 0
    fill: bool = False
    """The topic is filled once, before the rounds, and not deleted between them."""
    plain_write: bool = False
    alone: bool = False
    """One contestant after the other, the others' brokers stopped; otherwise in turns, beside idle ones."""
    properties: dict[str, Any] = msgspec.field(default_factory=dict)
    """Settings of the load."""
    suite: Suite = BROKERS
    """What is compared; a run takes the rows of one suite."""
    remark: str = ""


def read_scenario(path: Path) -> Scenario:
    """Read one file. Raises ToolError, naming the file, the key, its value and what would be right."""
    try:
        document = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ToolError(f"{path}: no TOML: {error}") from None
    if "id" in document:
        raise ToolError(f"{path}: id = {document['id']!r}: the id is the file's name; leave the key out")
    try:
        scenario = msgspec.convert({"id": path.stem, **document}, Scenario)
    except msgspec.ValidationError as error:
        raise ToolError(f"{path}: {_explain(str(error), document)}") from None
    names = {contestant.name for contestant in scenario.contestants} | {PLAIN_WRITE, LIMIT}
    for reach in scenario.reaches:
        if strangers := {reach.contestant, reach.baseline} - names:
            known = ", ".join(sorted(names))
            raise ToolError(f"{path}: reach of {reach.figure} names {', '.join(sorted(strangers))}; there are: {known}")
    return scenario


def _explain(message: str, value: Any) -> str:
    """msgspec's message behind the key and the value that it is about."""
    found = _PATH.search(message)
    if not found:
        return message
    for key, index in re.findall(r"(\w+)|\[(\d+)\]", found[1]):
        value = value[key] if key else value[int(index)]
    return f"{found[1]} = {value!r}: {_PATH.sub('', message)}"


def read_scenarios(directory: Path = DIRECTORY) -> list[Scenario]:
    """Every scenario, in the order of the files' names."""
    return [read_scenario(path) for path in sorted(directory.glob("*.toml"))]
