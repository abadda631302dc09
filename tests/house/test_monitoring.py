"""The dashboard and the alert rules name nothing that a node does not have."""

from __future__ import annotations

import json
import re

import pytest

from pybroker.metrics.registry import METRICS
from tests.support import repository

DASHBOARD, RULES = "docs/monitoring/grafana-dashboard.json", "docs/monitoring/alert-rules.yml"
SERIES = re.compile(r"\b(?:kafka|pybroker|process)_[a-zA-Z0-9_]+")
EXPOSED = {name: metric for metric in METRICS for name in metric.exposed}
OF_PROMETHEUS = {"le", "instance", "job"}


def expressions() -> list[str]:
    board = json.loads(repository.text(DASHBOARD))
    requested = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    requested += [variable["query"] for variable in board["templating"]["list"]]
    rules = re.findall(r"^ +expr: (?:\|\n((?: {10}.*\n)+)|(.*))", repository.text(RULES), re.M)
    return requested + [block or line for block, line in rules]


@pytest.mark.parametrize("expression", expressions())
def test_every_series_and_label_exists(expression: str) -> None:
    named = SERIES.findall(expression)
    assert [name for name in named if name not in EXPOSED] == []
    labels = set(re.findall(r"[{,]\s*(\w+)\s*(?:=~|=|!=)", expression))
    labels |= {label.strip() for found in re.findall(r"by \(([^)]*)\)", expression) for label in found.split(",")}
    assert labels <= {label for name in named for label in EXPOSED[name].labels} | OF_PROMETHEUS


def test_there_are_rules_and_panels() -> None:
    assert sum(bool(SERIES.search(expression)) for expression in expressions()) > 25
