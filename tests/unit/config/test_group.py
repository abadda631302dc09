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
    assert [bound.value for bound in group_bounds("consumer.session.timeout.ms", BROKER)] == [45_000, 60_000]


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
