"""A streams group's own settings over the broker's."""

from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.group.streams.settings import assignment_configs, build_streams_settings, overlay_streams

SETTINGS = build_streams_settings(BrokerConfig({}))


def test_a_groups_own_settings_take_precedence() -> None:
    own = {"streams.num.standby.replicas": "1", "streams.initial.rebalance.delay.ms": "0", "retention.ms": "1"}
    made = overlay_streams(SETTINGS, own)
    assert (made.standby_replicas, made.initial_rebalance_delay_ms, made.heartbeat_interval_ms) == (1, 0, 5000)
    assert assignment_configs(made) == {"num.standby.replicas": "1"}


def test_values_that_the_broker_no_longer_allows_are_brought_within_its_bounds() -> None:
    own = {"streams.num.standby.replicas": "9", "streams.session.timeout.ms": "1", "streams.assignor.name": "sticky"}
    made = overlay_streams(SETTINGS, own)
    assert (made.standby_replicas, made.session_timeout_ms, made.assignor) == (2, 45_000, "sticky")
