from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pybroker.metrics.exposition import render
from pybroker.metrics.metric import Histogram, Sample

REQUESTS = "kafka_network_requestmetrics_requests"
SIZE = "kafka_log_log_size_bytes"
TIME = "kafka_network_requestmetrics_totaltime_seconds"


def test_prometheus_reads_what_is_rendered() -> None:
    families = [
        (REQUESTS, [Sample(3, ("Produce",)), Sample(2**60, ('a"b\\c\nd',))]),
        (SIZE, [Sample(7, ("orders", "0"))]),
        (TIME, [Sample(Histogram((1.6e-05, 0.5), (1, 2, 4), 3.25), ("Fetch",))]),
        ("kafka_controller_kafkacontroller_globaltopiccount", [Sample(0)]),
    ]
    found = {one.name: one for one in text_string_to_metric_families("".join(render(families)))}
    assert [(s.name, s.labels, s.value) for s in found[REQUESTS].samples] == [
        (f"{REQUESTS}_total", {"request": "Produce"}, 3),
        (f"{REQUESTS}_total", {"request": 'a"b\\c\nd'}, 2**60),
    ]
    assert (found[SIZE].type, found[SIZE].unit) == ("gauge", "bytes")
    assert {(s.name[len(TIME) :], s.labels.get("le"), s.value) for s in found[TIME].samples} == {
        ("_bucket", "1.6e-05", 1),
        ("_bucket", "0.5", 2),
        ("_bucket", "+Inf", 4),
        ("_count", None, 4),
        ("_sum", None, 3.25),
    }
    assert found["kafka_controller_kafkacontroller_globaltopiccount"].samples[0].labels == {}


def test_a_long_text_comes_in_pieces() -> None:
    pieces = list(render([(SIZE, (Sample(0, ("t", str(index))) for index in range(1000)))]))
    assert len(pieces) >= 5
    assert max(piece.count("\n") for piece in pieces) <= 250


def test_a_name_that_is_not_registered_is_no_metric() -> None:
    with pytest.raises(KeyError, match="nothing"):
        list(render([("nothing", [])]))


def test_a_sample_has_a_value_for_each_label() -> None:
    with pytest.raises(ValueError, match="argument"):
        list(render([(SIZE, [Sample(1, ("orders",))])]))
