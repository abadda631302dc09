from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as classic_families

from pybroker.metrics.exposition import render, wants_classic
from pybroker.metrics.metric import Histogram, Sample

REQUESTS = "kafka_network_requestmetrics_requests"
SIZE = "kafka_log_log_size_bytes"
TIME = "kafka_network_requestmetrics_totaltime_seconds"


FAMILIES = [
    (REQUESTS, [Sample(3, ("Produce",)), Sample(2**60, ('a"b\\c\nd',))]),
    (SIZE, [Sample(7, ("orders", "0"))]),
    (TIME, [Sample(Histogram((1.6e-05, 0.5), (1, 2, 4), 3.25), ("Fetch",))]),
    ("kafka_controller_kafkacontroller_globaltopiccount", [Sample(0)]),
]


def test_prometheus_reads_what_is_rendered() -> None:
    found = {one.name: one for one in text_string_to_metric_families("".join(render(FAMILIES)))}
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


def test_the_parser_of_the_classic_format_reads_the_same_series() -> None:
    text = "".join(render(FAMILIES, classic=True))
    classic, new = list(classic_families(text)), list(text_string_to_metric_families("".join(render(FAMILIES))))
    assert [(one.name, one.type, one.documentation) for one in classic] == [
        (one.name, one.type, one.documentation) for one in new
    ]
    assert [one.samples for one in classic] == [one.samples for one in new]
    assert f"# TYPE {REQUESTS}_total counter\n" in text, "the classic format names a counter as its series"
    assert "# UNIT" not in text
    assert "# EOF" not in text


PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;"
    "q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "classic"),
    [
        ("", False),
        ("*/*", False),
        (PROMETHEUS_2, False),
        (PROMETHEUS_3, False),
        ("application/json", False),
        ("text/plain, application/openmetrics-text", False),
        ("text/plain", True),
        ("text/plain;version=0.0.4", True),
        ("TEXT/PLAIN; version=0.0.4; charset=utf-8, */*;q=0.1", True),
        ("text/html,text/*;q=0.9", True),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.5", True),
        ("application/openmetrics-text;q=0, */*", True),
        ("text/plain;q=much", False),
    ],
)
def test_a_client_gets_the_format_that_it_prefers(accept: str, classic: bool) -> None:
    """By RFC 9110, 12.5.1; the first ones are what Prometheus 2 and 3 send."""
    assert wants_classic(accept) == classic
