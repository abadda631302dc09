from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.replica.throttled import ThrottledSides, throttled_sides


def sides(leaders: str, followers: str, index: int = 3, node_id: int = 1) -> ThrottledSides:
    overrides = {
        "leader.replication.throttled.replicas": leaders,
        "follower.replication.throttled.replicas": followers,
    }
    return throttled_sides(TopicConfig(overrides, BrokerConfig({})), index, node_id)


@pytest.mark.parametrize(
    ("named", "is_throttled"),
    [
        ("", False),
        ("*", True),
        ("3:1", True),
        ("0:1,3:2,3:1", True),
        ("3:01", True),
        ("3:2,13:1,3:11", False),
        (f"0:{'9' * 4301},{'0' * 5000}3:1", True),
    ],
)
def test_a_replica_is_throttled_that_the_topics_setting_names(named: str, is_throttled: bool) -> None:
    assert sides(named, "") == (is_throttled, False)
    assert sides("", named) == (False, is_throttled)
