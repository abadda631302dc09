"""Settings of groups: the group's own over the broker's, within the broker's bounds."""

from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.group import GroupConfig, group_bounds, group_fault, group_synonym

BROKER = BrokerConfig({"group.consumer.heartbeat.interval.ms": "6000"})


def test_what_a_group_was_not_given_its_broker_fills_in() -> None:
    config = GroupConfig({"consumer.session.timeout.ms": "50000"}, BROKER)
    assert config.consumer_session_timeout_ms == 50_000
    assert config.consumer_heartbeat_interval_ms == 6000
    assert group_synonym("consumer.session.timeout.ms").name == "group.consumer.session.timeout.ms"
    assert _bounds("consumer.session.timeout.ms") == [45_000, 60_000]


def test_keys_of_streams_groups_have_the_bounds_of_the_broker() -> None:
    assert _bounds("streams.session.timeout.ms") == [45_000, 60_000]
    assert _bounds("streams.task.offset.interval.ms") == [15_000, None]
    assert _bounds("streams.num.standby.replicas") == [None, 2]
    assert _bounds("streams.num.warmup.replicas") == [None, 20]
    assert _bounds("streams.initial.rebalance.delay.ms") == [None, None]


def test_the_assignor_of_a_streams_group_is_the_first_of_the_brokers_list() -> None:
    assert group_synonym("streams.assignor.name").name == "group.streams.assignors"
    assert GroupConfig({}, BROKER).streams_assignor_name == "sticky"


def _bounds(name: str) -> list[int | None]:
    return [None if bound is None else bound.value for bound in group_bounds(name, BROKER)]


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ({}, None),
        ({"consumer.session.timeout.ms": "60000", "consumer.heartbeat.interval.ms": "15000"}, None),
        (
            {"consumer.session.timeout.ms": "44999"},
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"consumer.heartbeat.interval.ms": "15001"},
            "consumer.heartbeat.interval.ms must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {"consumer.assignment.interval.ms": "x"},
            "consumer.assignment.interval.ms=x: expected a whole number from 0 to 2147483647",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            {"streams.task.offset.interval.ms": "14999"},
            "streams.task.offset.interval.ms must be greater than or equal to group.streams.min.task.offset",
        ),
        ({"streams.assignor.name": "own"}, "streams.assignor.name=own: expected one of sticky"),
        ({"streams.rack.aware.assignment.tags": "zone"}, "streams.rack.aware.assignment.tags=zone: expected an empty"),
        ({"consumer.sesion.timeout.ms": "1"}, "Unknown group config name: consumer.sesion.timeout.ms; is"),
    ],
)
def test_what_is_wrong_with_a_groups_settings_is_said(configs: dict[str, str], words: str | None) -> None:
    fault = group_fault(configs, BROKER)
    if words is None or fault is None:
        assert fault == words
    else:
        assert fault.startswith(words)


def test_a_session_outlasts_heartbeats() -> None:
    broker = BrokerConfig(
        {"group.consumer.min.session.timeout.ms": "6000", "group.consumer.max.heartbeat.interval.ms": "9000"}
    )
    fault = group_fault({"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "6000"}, broker)
    assert fault == "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"


def test_an_unknown_key_is_no_setting_of_a_group() -> None:
    with pytest.raises(ConfigError, match="Unknown group config name"):
        GroupConfig({"retention.ms": "1"}, BROKER)
