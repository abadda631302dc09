"""What a classic group says of itself: subscriptions and when the retention of its offsets begins."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group.classic.group import ClassicGroup, subscribed_topics
from pybroker.coordinator.group.classic.members import ClassicMember
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.ids import GroupId, MemberId
from pybroker.protocol.messages.consumer_protocol import encode_framed
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

COMMITTED, SINCE = 100, 200


def group(**changes: Any) -> ClassicGroup:
    return ClassicGroup(id=GroupId("g"), since_ms=SINCE, **changes)


def member(*topics: str, version: int = 0, raw: bytes | None = None) -> ClassicMember:
    subscription = encode_framed(ConsumerProtocolSubscription(topics=list(topics)), version) if raw is None else raw
    return ClassicMember(
        id=MemberId("m"),
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocols=(("range", subscription),),
    )


@pytest.mark.parametrize(
    ("one", "begins"),
    [
        (group(), COMMITTED),
        (group(protocol_type="consumer"), SINCE),
        (group(protocol_type="connect"), SINCE),
        (group(protocol_type="consumer", state=ClassicState.STABLE, subscribed=frozenset()), COMMITTED),
        (group(protocol_type="consumer", state=ClassicState.STABLE), None),
        (group(protocol_type="connect", state=ClassicState.STABLE), None),
        (group(protocol_type="consumer", state=ClassicState.PREPARING_REBALANCE, subscribed=frozenset()), None),
        (ClassicGroup(id=GroupId("g"), protocol_type="consumer"), COMMITTED),
    ],
)
def test_retention_begins_as_in_kafka(one: ClassicGroup, begins: int | None) -> None:
    assert one.retention_begins(COMMITTED) == begins


@pytest.mark.parametrize("version", range(4))
def test_topics_are_read_from_every_version_of_the_subscription(version: int) -> None:
    members = [member("a", "b", version=version), member("c", version=version)]
    assert subscribed_topics("consumer", "range", members) == {"a", "b", "c"}


@pytest.mark.parametrize("raw", [b"", b"\0", b"\0\0\0\0\0\5", b"\xff\xff"])
def test_topics_of_a_member_that_says_nonsense_are_not_known(raw: bytes) -> None:
    assert subscribed_topics("consumer", "range", [member(raw=raw)]) is None


def test_of_a_newer_subscription_the_topics_are_read_as_those_of_the_first_version() -> None:
    """As by Kafka: it says version 1, and its owned partitions are missing."""
    raw = b"\0\1\0\0\0\1\0\1a\xff\xff\xff\xff"
    assert subscribed_topics("consumer", "range", [member(raw=raw)]) == {"a"}


def test_more_topics_than_a_request_may_name_are_not_read() -> None:
    names = [f"t{number}" for number in range(50_001)]
    assert subscribed_topics("consumer", "range", [member(*names[:-1])]) == frozenset(names[:-1])
    assert subscribed_topics("consumer", "range", [member(*names)]) is None


def test_only_consumers_subscribe_to_topics() -> None:
    assert subscribed_topics("connect", "range", [member("a")]) is None
    assert subscribed_topics(None, None, []) is None
    assert subscribed_topics("consumer", None, []) == frozenset()
    assert group(protocol_type="consumer").is_subscribed_to("a")
    assert not group(protocol_type="connect").is_subscribed_to("a")
    assert not group(protocol_type="consumer", subscribed=frozenset("b")).is_subscribed_to("a")
