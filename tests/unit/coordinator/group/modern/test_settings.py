"""A group's own settings over the broker's: in bounds, and read by its decisions alone."""

from __future__ import annotations

from pybroker.coordinator.group.events import Client, ConsumerHeartbeat
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.modern.settings import overlay
from pybroker.coordinator.group.reconciled.timers import session_key
from pybroker.coordinator.group.settings import build_own_settings
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.machine.machine import Delayed
from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.groups import group_settings

SETTINGS = group_settings()
TOPICS = Topics({"a": TopicInfo(b"a" * 16, 1)}, {b"a" * 16: "a"}, 1)


def test_what_a_group_sets_goes_before_what_its_broker_sets() -> None:
    own = {"consumer.session.timeout.ms": "50000", "consumer.assignment.interval.ms": "0"}
    made = overlay(SETTINGS.consumer, own)
    assert (made.session_timeout_ms, made.heartbeat_interval_ms, made.assignment_interval_ms) == (50_000, 5000, 0)


def test_what_the_broker_no_longer_allows_is_brought_within_its_bounds() -> None:
    own = {"consumer.session.timeout.ms": "90000", "consumer.heartbeat.interval.ms": "1"}
    made = overlay(SETTINGS.consumer, own)
    assert (made.session_timeout_ms, made.heartbeat_interval_ms) == (60_000, 5000)


def test_a_groups_settings_are_those_of_no_other_group() -> None:
    given = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "7000"}
    own = build_own_settings(SETTINGS, given)
    machine = GroupMachine(SETTINGS, lambda: TOPICS, lambda: {"own": own})
    for group, interval_ms, timeout_ms in (("own", 7000, 50_000), ("other", 5000, 45_000)):
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["a"],
            topic_partitions=[],
        )
        outcome = machine.handle(ConsumerHeartbeat(request, 1, Client("c", "/h"), "fresh"), 1_000_000)
        deadlines = {timer.key: timer.deadline_ms for timer in outcome.timers}
        assert not isinstance(outcome.reply, Delayed)
        assert outcome.reply.heartbeat_interval_ms == interval_ms
        assert deadlines[session_key(group, "m")] == 1_000_000 + timeout_ms
