"""How dirty a log is: Kafka's arithmetic, equation by equation."""

from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.storage.compaction.dirtiness import (
    Bytes,
    CompactionPolicy,
    Segment,
    bytes_of,
    first_dirty_offset,
    first_uncleanable_offset,
    overdue_ms,
)

NOW = 1_000_000
SEGMENTS = [Segment(0, 100, 100), Segment(10, 200, 200), Segment(20, 400, 990_000), Segment(30, 50, 300)]
ACTIVE = 30


def policy(**settings: str) -> CompactionPolicy:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return CompactionPolicy.of(TopicConfig({"cleanup.policy": "compact", **given}, BrokerConfig({})))


def test_a_policy_is_what_the_topic_says() -> None:
    made = policy(min_cleanable_dirty_ratio="0.1", min_compaction_lag_ms="5", max_compaction_lag_ms="9")
    assert made == CompactionPolicy(True, False, 0.1, 5, 9)
    both = CompactionPolicy.of(TopicConfig({"cleanup.policy": "delete,compact"}, BrokerConfig({})))
    assert (both.compact, both.delete) == (True, True)


@pytest.mark.parametrize(("checkpoint", "first_dirty"), [(None, 5), (5, 5), (17, 17), (40, 40), (4, 5), (41, 5)])
def test_a_checkpoint_outside_the_log_counts_for_nothing(checkpoint: int | None, first_dirty: int) -> None:
    assert first_dirty_offset(checkpoint, 5, 40) == first_dirty


def test_the_active_segment_is_never_cleaned() -> None:
    assert first_uncleanable_offset(SEGMENTS, 0, 1000, policy(), NOW) == ACTIVE
    assert first_uncleanable_offset([Segment(7, 10, 1)], 7, 1000, policy(), NOW) == 7


def test_the_segment_of_the_last_stable_offset_is_not_cleaned() -> None:
    assert first_uncleanable_offset(SEGMENTS, 0, 20, policy(), NOW) == 20
    assert first_uncleanable_offset(SEGMENTS, 0, 19, policy(), NOW) == 10
    assert first_uncleanable_offset(SEGMENTS, 25, 3, policy(), NOW) == 20, "what was cleaned stays cleaned"


def test_the_first_segment_with_a_young_record_ends_what_can_be_cleaned() -> None:
    lagging = policy(min_compaction_lag_ms="20000")
    assert first_uncleanable_offset(SEGMENTS, 0, 1000, lagging, NOW) == 20
    assert first_uncleanable_offset(SEGMENTS, 0, 1000, lagging, NOW + 10_001) == ACTIVE
    assert first_uncleanable_offset(SEGMENTS, 0, 15, lagging, NOW) == 10


def test_bytes_are_counted_by_whole_segments() -> None:
    assert bytes_of(SEGMENTS, 0, ACTIVE) == Bytes(0, 700)
    assert bytes_of(SEGMENTS, 10, ACTIVE) == Bytes(100, 600)
    assert bytes_of(SEGMENTS, 15, ACTIVE) == Bytes(300, 600), "as in Kafka, the segment in between counts for both"
    assert bytes_of(SEGMENTS, 20, 10) == Bytes(300, 0)
    assert bytes_of(SEGMENTS, 30, ACTIVE) == Bytes(700, 0)
    assert Bytes(100, 300).ratio == 0.75
    assert Bytes(0, 0).ratio == 0


def test_a_log_is_overdue_by_the_age_of_its_oldest_dirty_segment() -> None:
    lag = policy(max_compaction_lag_ms="1000")
    assert overdue_ms(NOW - 1000, lag, NOW) == 0
    assert overdue_ms(NOW - 1001, lag, NOW) == 1
    assert overdue_ms(None, lag, NOW) == 0
    assert overdue_ms(1, policy(), NOW) == 0
