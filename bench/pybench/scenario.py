"""Scenarios: the loads to run, their baselines and the target figures. Read from `bench/scenarios/*.toml`.

Knows the format of scenario files, not how scenarios are run.
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
"""The name of a baseline that is a number instead of a contestant."""
PLAIN_WRITE = "plain write"
"""The additional contestant of a row with `plain_write`."""
BROKERS: Final = "brokers"
SPARK: Final = "spark"
STREAMS: Final = "streams"
Suite = Literal["brokers", "spark", "streams"]
SUITES: tuple[Suite, ...] = (BROKERS, SPARK, STREAMS)
#: msgspec ends its messages with the path of the value, unless it is the document itself.
_PATH = re.compile(r" - at `\$\.?(.*)`$")


class Contestant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One side of a comparison: a load against a broker."""

    name: str
    broker: str
    """`pybroker`, `kafka`, a variant of either (`pybench.compare.VARIANTS`), `sink`, or `none`."""
    load: str
    """A key of `pybench.loads.LOADS`."""


class Reach(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of a contestant's figure, as a ratio to the baseline's or to plain write()."""

    figure: str
    contestant: str
    baseline: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    limit: float | None = None
    """The value of the baseline `limit`, the denominator of the ratio. With 0, no round may exceed it."""

    def is_met(self, ratio: float) -> bool:
        """Whether a measured ratio meets the target."""
        return (self.at_least is None or ratio >= self.at_least) and (self.at_most is None or ratio <= self.at_most)

    def text(self) -> str:
        """Return the bound as text for a table."""
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
    """The name of the file without its suffix. Not a key of the file."""
    title: str
    contestants: tuple[Contestant, ...]
    reaches: tuple[Reach, ...] = msgspec.field(default=(), name="reach")
    figures: tuple[str, ...]
    """The figures in the report, most important first."""
    records: int
    quick_records: int
    rounds: int = 0
    """Minimum number of counted rounds, for rows with large variance. Quick runs ignore it."""
    size: int = 0
    fill: bool = False
    """Whether the topic is filled once before the rounds and kept between them."""
    plain_write: bool = False
    alone: bool = False
    """Whether contestants run one after the other, with other brokers stopped. Otherwise rounds are interleaved."""
    properties: dict[str, Any] = msgspec.field(default_factory=dict)
    """Settings of the load."""
    suite: Suite = BROKERS
    """The suite of the row. A run covers the rows of one suite."""
    remark: str = ""


def read_scenario(path: Path) -> Scenario:
    """Read one file. Raises ToolError with the file, the key, its value and the expected value."""
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
    """Return msgspec's message, prefixed with the key and its value."""
    found = _PATH.search(message)
    if not found:
        return message
    for key, index in re.findall(r"(\w+)|\[(\d+)\]", found[1]):
        value = value[key] if key else value[int(index)]
    return f"{found[1]} = {value!r}: {_PATH.sub('', message)}"


def read_scenarios(directory: Path = DIRECTORY) -> list[Scenario]:
    """Return every scenario, in the order of file names."""
    return [read_scenario(path) for path in sorted(directory.glob("*.toml"))]
