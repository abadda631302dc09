from __future__ import annotations

import re

import pytest

from pybroker.metrics.metric import Kind, Metric
from pybroker.metrics.registry import BY_NAME, METRICS


def test_no_two_metrics_have_a_series_in_common() -> None:
    series = [name for metric in METRICS for name in metric.exposed]
    assert len(set(series)) == len(series) == len({*series, *BY_NAME}) - sum(m.name not in series for m in METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_are_what_openmetrics_allows(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z_][a-zA-Z0-9_]*", metric.name)
    assert all(re.fullmatch(r"[a-zA-Z_]\w*", label) for label in metric.labels)
    assert not metric.unit or metric.name.endswith(f"_{metric.unit}")
    assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket")) or metric.kind is Kind.GAUGE
    assert metric.help.endswith(".")
    assert not metric.kafka or re.match(r"kafka\.[a-z.]+:type=[\w-]+,", metric.kafka)
