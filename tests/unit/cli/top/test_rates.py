from __future__ import annotations

import pytest

from pybroker.cli.top.rates import build_view, rate_text, summary
from pybroker.cli.top.sampling import GroupSample, Sample
from pybroker.client.administration.topics import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def sample(at_s: float, ends: dict[TopicPartition, int], committed: dict[TopicPartition, int]) -> Sample:
    groups = {"readers": GroupSample("Stable", committed)}
    return Sample(at_s, 3, {A0: 1, A1: 2, B0: None}, ends, 1, groups, 0)


def test_rates_are_what_offsets_have_moved_by() -> None:
    before = sample(10.0, {A0: 100, A1: 50}, {A0: 90, A1: 50})
    view = build_view(before, sample(12.0, {A0: 300, A1: 70}, {A0: 130, A1: 50}))
    assert [(row.topic, row.partitions, row.rate, row.records) for row in view.topics] == [
        ("a", 2, 110.0, 370),
        ("b", 1, 0.0, 0),
    ]
    assert [(row.topic, row.partition, row.leader, row.rate) for row in view.partitions] == [
        ("a", 0, 1, 100.0),
        ("a", 1, 2, 10.0),
        ("b", 0, None, 0.0),
    ]
    (group,) = view.groups
    assert (group.rate, group.lag, group.behind_s) == (20.0, 190, 9.5)
    assert summary(view) == (
        "3 brokers, 2 topics, 3 partitions, 110 records/s over 2.0 s, 1 WITHOUT A LEADER, 1 under-replicated"
    )


def test_an_offset_that_goes_back_or_is_new_has_no_rate() -> None:
    view = build_view(sample(1.0, {A0: 100}, {}), sample(2.0, {A0: 5, A1: 1000}, {A0: 5}))
    assert view.rate == 0.0
    assert view.groups[0].behind_s == 0.0
    standing = build_view(sample(1.0, {A0: 9}, {A0: 1}), sample(2.0, {A0: 9}, {A0: 1})).groups[0]
    assert (standing.behind_s, standing.cells()[-1]) == (None, "-")


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0, "0"), (0.25, "0.2"), (12.4, "12"), (9_999, "9999"), (12_345, "12.3k"), (2.5e6, "2.5M"), (3e9, "3.0G")],
)
def test_rates_are_short(rate: float, text: str) -> None:
    assert rate_text(rate) == text
