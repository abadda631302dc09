"""The comparison's files: scenarios that can be read, and a report that says what was met and missed."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from pybench import report
from pybench.cluster_loads import FAULTS
from pybench.compare import VARIANTS
from pybench.figures import FIGURES, summarise
from pybench.loads import LOADS
from pybench.scenario import SPARK, STREAMS, Reach, Scenario, read_scenario, read_scenarios
from pybench.spark_loads import TOGETHER
from pybench.spark_source import ROWS
from pybench.turns import OWN_BROKER, SINK
from pybroker.cli.perf.options import ToolError

BROKERS = {*VARIANTS, SINK, "none"}


@pytest.mark.parametrize("scenario", read_scenarios(), ids=lambda s: s.id)
def test_every_scenario_names_what_exists(scenario: Scenario) -> None:
    together = {TOGETHER + row for row in ROWS}
    assert {c.load for c in scenario.contestants} <= LOADS.keys() | FAULTS.keys() | OWN_BROKER | together
    assert (scenario.suite == SPARK) == scenario.id.startswith("spark-")
    assert (scenario.suite == STREAMS) == scenario.id.startswith("streams-")
    assert {c.broker for c in scenario.contestants} <= BROKERS
    assert {*scenario.figures, *(r.figure for r in scenario.reaches)} <= FIGURES.keys()
    assert all(r.at_least is not None or r.at_most is not None for r in scenario.reaches)
    assert scenario.records >= scenario.quick_records > 0


def test_a_scenario_that_names_a_stranger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        'title = "x"\nrecords = 1\nquick_records = 1\nfigures = []\n'
        '[[contestants]]\nname = "a"\nbroker = "kafka"\nload = "c-connections"\n'
        '[[reach]]\nfigure = "start_s"\ncontestant = "a"\nbaseline = "b"\nat_most = 1\n'
    )
    with pytest.raises(ToolError, match="reach of start_s names b; there are: a, limit, plain write"):
        read_scenario(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("records = '5'", r"records = '5': Expected `int`, got `str`"),
        ("recods = 5", r"Object contains unknown field `recods`"),
        ("id = 'other'", r"id = 'other': the id is the file's name"),
        ("suite = 'all'", r"suite = 'all': Invalid enum value 'all'"),
        ("[[contestants]]\nname = 3", r"contestants\[0\]\.name = 3: Expected `str`, got `int`"),
        ("[[reach]", r"no TOML: "),
    ],
)
def test_what_is_wrong_in_a_scenario_is_named_with_its_key_and_value(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f"title = 'x'\n{line}\n")
    with pytest.raises(ToolError, match=f"x.toml: {said}"):
        read_scenario(path)


def test_costs_are_pooled_and_rates_are_medians() -> None:
    rounds = [
        {"records": 1e6, "bytes": 1e8, "seconds": s, "broker_user_s": u, "broker_system_s": 0.0}
        for s, u in ((1.0, 0.01), (0.5, 0.02), (2.0, 0.06))
    ]
    assert summarise("records_per_second", rounds).middle == 1.0
    cost = summarise("broker_user_s_per_mrec", rounds)
    assert cost.middle == pytest.approx(0.03)
    assert (cost.low, cost.high) == (0.01, 0.06)


def test_the_report_has_ratios_ranges_commands_and_misses(tmp_path: Path) -> None:
    scenario = next(s for s in read_scenarios() if s.id == "14-connections")
    cost = {"broker_user_s": 0.1, "broker_system_s": 0.1, "broker_rss_bytes": 1, "p99_ms": 1.5}
    contestants = {
        name: {
            "command": f"command of {name}",
            "rounds": [{"records": 1000, "seconds": s, **cost} for s in seconds],
            "again": 2,
        }
        for name, seconds in (("pybroker", (2.0, 1.0, 4.0)), ("Apache Kafka", (1.0, 1.0, 1.0)))
    }
    document = {
        "title": scenario.title, "taken": "2026-01-01T00:00:00+00:00", "quick": False, "kafka_in_both_roles": False,
        "records": 1000, "size": 0, "rounds": 3, "warm_up_rounds": 1, "contestants": contestants,
        "congestion_control": "bbr", "cores": 2, "processor": "Threadripper",
        "versions": {"pybroker": "0", "kafka": "4", "python": "3", "kernel": "6"},
    }  # fmt: skip
    (tmp_path / "14-connections.json").write_text(json.dumps(document))
    text = report.write(tmp_path, None).read_text()
    assert "| pybroker: 500 | Apache Kafka: 1000 | 0.50 | ≥ 2 | **missed** |" in text
    assert "| pybroker | 500 (250–1000) |" in text
    assert "command of Apache Kafka" in text
    assert "1,000 records each, 2 more not counted, as the host took the cores away; 2026-01-01" in text
    assert "2 cores of Threadripper, TCP congestion control bbr" in text
    assert list(report.verdicts(scenario, document)) == [
        "connections: pybroker / Apache Kafka = 0.5, to reach ≥ 2: MISSED"
    ]


@pytest.mark.parametrize(
    ("failed", "verdict"), [([0.0, 0.0, 0.0], "0, to reach ≤ 0: met"), ([0.0, 0.0, 2.0], "MISSED")]
)
def test_where_nothing_is_allowed_one_round_with_more_is_a_miss(failed: list[float], verdict: str) -> None:
    reach = Reach(figure="failed", contestant="pybroker", baseline="limit", limit=0, at_most=1)
    scenario = msgspec.structs.replace(read_scenarios()[0], reaches=(reach,))
    rounds = [{"records": 1.0, "seconds": 1.0, "failed": count} for count in failed]
    (line,) = report.verdicts(scenario, {"contestants": {"pybroker": {"rounds": rounds}}})
    assert line.endswith(verdict)


def test_a_row_whose_figures_scatter_has_more_rounds() -> None:
    assert {s.id for s in read_scenarios() if s.rounds == 10} >= {"57-cluster-leader-kill"}


def test_a_contestant_that_a_row_has_got_since_is_not_measured() -> None:
    reach = Reach(figure="failed", contestant="later", baseline="limit", limit=1, at_most=1)
    scenario = msgspec.structs.replace(read_scenarios()[0], reaches=(reach,))
    (line,) = report.verdicts(scenario, {"contestants": {"pybroker": {"rounds": []}}})
    assert line.endswith("later, to reach ≤ 1: not measured")


def test_a_figure_that_a_row_has_got_since_is_not_measured() -> None:
    reach = Reach(figure="served_ms", contestant="pybroker", baseline="limit", limit=1, at_most=1)
    scenario = msgspec.structs.replace(read_scenarios()[0], reaches=(reach,))
    rounds = [{"records": 1.0, "seconds": 1.0}]
    (line,) = report.verdicts(scenario, {"contestants": {"pybroker": {"rounds": rounds}}})
    assert line.endswith("pybroker, to reach ≤ 1: not measured")
