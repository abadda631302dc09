"""The configurations of subscriptions to clients' metrics: Kafka's rules, in Kafka's words."""

from __future__ import annotations

import pytest

from pybroker.config.client_metrics import ClientMetricsConfig, client_metrics_fault

ILLEGAL = "Illegal client matching pattern: "


@pytest.mark.parametrize(
    ("texts", "message", "of_request"),
    [
        ({"foo": "1"}, "Unknown client metrics configuration: foo", True),
        (
            {"interval.ms": "99"},
            "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
            True,
        ),
        (
            {"interval.ms": "3600001"},
            "Invalid value 3600001 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
            True,
        ),
        ({"interval.ms": "x"}, "Invalid value x for configuration interval.ms: Not a number of type INT", False),
        (
            {"interval.ms": "9" * 5000},
            f"Invalid value {'9' * 5000} for configuration interval.ms: Not a number of type INT",
            False,
        ),
        (
            {"interval.ms": "3000000000"},
            "Invalid value 3000000000 for configuration interval.ms: Not a number of type INT",
            False,
        ),
        ({"match": "client_id"}, ILLEGAL + "client_id", False),
        ({"match": "client_id="}, ILLEGAL + "client_id=", False),
        ({"match": "client_id=a=b"}, ILLEGAL + "client_id=a=b", False),
        ({"match": "client_ip=1.*"}, ILLEGAL + "client_ip=1.*", False),
        ({"match": "client_id=a,client_id=["}, ILLEGAL + "client_id=[", False),
        ({"match": "client_id=(?=a)"}, ILLEGAL + "client_id=(?=a)", False),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(texts: dict[str, str], message: str, of_request: bool) -> None:
    fault = client_metrics_fault("s", texts)
    assert fault is not None
    assert (fault.message, fault.of_request) == (message, of_request)


def test_what_is_in_order_has_no_fault() -> None:
    texts = {"metrics": "*", "interval.ms": "100", "match": "client_id = a.* ,client_source_port=9.*="}
    assert client_metrics_fault("s", texts) is None
    assert client_metrics_fault("s", {}) is None
    no_name = client_metrics_fault("", {"metrics": "*"})
    assert no_name is not None
    assert no_name.message == "Subscription name can't be empty"


def test_patterns_match_whole_texts() -> None:
    config = ClientMetricsConfig({"match": "client_id=a+, client_software_version=11\\..*"})
    patterns = config.patterns
    assert patterns["client_id"]("aa")
    assert not patterns["client_id"]("aab")
    assert patterns["client_software_version"]("11.1.2")
    assert (config.metrics, config.interval_ms) == ((), 300_000)
