from __future__ import annotations

from pybroker.metrics.requests import RequestCounts


def test_counts_of_a_version_are_one_object() -> None:
    counts = RequestCounts()
    counts.of("Metadata", 12).requests += 1
    counts.of("Metadata", 12).requests += 1
    assert counts.of("Metadata", 12).requests == 2
    assert counts.of("Metadata", 9).requests == 0


def test_the_text_names_versions_that_were_asked_for_in_the_order_of_names_and_numbers() -> None:
    counts = RequestCounts()
    assert str(counts) == ""
    for api, version, requests, failures in (("Metadata", 12, 31, 2), ("Metadata", 9, 5, 0), ("CreateTopics", 7, 1, 1)):
        found = counts.of(api, version)
        found.requests, found.failures = requests, failures
    counts.of("Heartbeat", 4)
    assert str(counts) == "CreateTopics v7 1 (1 failed), Metadata v9 5, Metadata v12 31 (2 failed)"
