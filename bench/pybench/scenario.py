"""Scenarios: what is run, against what it is held, which figure is to be reached. Read from `bench/scenarios/*.toml`.

Knows how a scenario is written, not how it is run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybench.checkout import BENCH
from pybench.options import ToolError

DIRECTORY = BENCH / "scenarios"
LIMIT = "limit"
"""A baseline that is a number, not a contestant."""
BROKERS, SPARK = "brokers", "spark"
SUITES = (BROKERS, SPARK)


@dataclass(frozen=True, slots=True)
class Contestant:
    """One side of a comparison: a load against a broker."""

    name: str
    broker: str
    """`pybroker`, `kafka`, one of either with other settings (`pybench.compare.VARIANTS`), `sink`, or `none`."""
    load: str
    """A name of `pybench.loads.LOADS`."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a figure of a contestant is to reach, as a ratio to the baseline's or to plain write()."""

    figure: str
    contestant: str
    baseline: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    limit: float | None = None
    """With the baseline `limit`: the value itself that the ratio is taken to."""

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


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the comparison."""

    id: str
    title: str
    contestants: tuple[Contestant, ...]
    reaches: tuple[Reach, ...]
    figures: tuple[str, ...]
    """The figures that the report shows, the most important first."""
    records: int
    quick_records: int
    size: int
    fill: bool
    """The topic is filled once, before the rounds, and not deleted between them."""
    plain_write: bool
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the load."""
    suite: str = BROKERS
    """What is compared; a run takes the rows of one suite."""
    remark: str = ""


def read_scenario(path: Path) -> Scenario:
    """Read one file. Raises ToolError, naming the file and the key."""
    document = tomllib.loads(path.read_text())
    try:
        contestants = tuple(Contestant(**c) for c in document.pop("contestants"))
        names = {c.name for c in contestants} | {"plain write", LIMIT}
        reaches = tuple(Reach(**r) for r in document.pop("reach", ()))
        for reach in reaches:
            if {reach.contestant, reach.baseline} - names:
                raise ToolError(f"{path}: reach of {reach.figure} names {reach.contestant} and {reach.baseline}")
        defaults: dict[str, Any] = {"size": 0, "fill": False, "plain_write": False}
        values = {**defaults, **document, "figures": tuple(document["figures"])}
        if values.get("suite", BROKERS) not in SUITES:
            raise ToolError(f"{path}: suite = {values['suite']!r} is none of {', '.join(SUITES)}")
        return Scenario(id=path.stem, contestants=contestants, reaches=reaches, **values)
    except (TypeError, KeyError) as error:
        raise ToolError(f"{path}: {error}") from None


def read_scenarios(directory: Path = DIRECTORY) -> list[Scenario]:
    """Every scenario, in the order of the files' names."""
    return [read_scenario(path) for path in sorted(directory.glob("*.toml"))]
