"""Payloads of OpenTelemetry, and what is none."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1 import metrics_pb2

from pybroker.telemetry.otlp import MalformedPayloadError, Point, find_decoder


def test_numbers_of_gauges_and_sums_are_read() -> None:
    data = metrics_pb2.MetricsData()
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    gauge = metrics.add(name="g").gauge.data_points.add(as_double=1.5)
    gauge.attributes.add(key="topic").value.string_value = "t"
    gauge.attributes.add(key="partition").value.int_value = 3
    total = metrics.add(name="s").sum
    total.aggregation_temporality = metrics_pb2.AGGREGATION_TEMPORALITY_DELTA
    total.data_points.add(as_int=7)
    cumulative = metrics.add(name="c").sum
    cumulative.aggregation_temporality = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
    cumulative.data_points.add(as_int=8)
    metrics.add(name="h").histogram.data_points.add(count=1)
    decode = find_decoder()
    assert decode is not None
    assert list(decode(data.SerializeToString())) == [
        Point("g", (("partition", "3"), ("topic", "t")), 1.5, False, False),
        Point("s", (), 7.0, True, True),
        Point("c", (), 8.0, False, True),
    ]


def test_what_is_no_payload_is_refused() -> None:
    decode = find_decoder()
    assert decode is not None
    with pytest.raises(MalformedPayloadError, match="not OpenTelemetry MetricsData"):
        list(decode(b"\xff\xff\xff"))
