"""The configuration of streams groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.reconciled.settings import own_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.broker import BrokerConfig

_MOST = 2**63 - 1


class StreamsGroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that decisions about streams groups read."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_size: int
    """Maximum number of members of a streams group."""
    assignor: str
    standby_replicas: int
    """Number of standby tasks for each task with state."""
    warmup_replicas: int
    """Maximum number of warm-up tasks. Has no effect yet, as in Kafka 4.4: no task is warmed up."""
    acceptable_recovery_lag: int
    """Members consider a task with at most this lag, in records, as caught up."""
    task_offset_interval_ms: int
    initial_rebalance_delay_ms: int
    """How long an empty group waits for more members after the first."""
    assignment_interval_ms: int
    """Minimum time between two target assignments of a group."""
    ranges: Mapping[str, tuple[int, int]]
    """The allowed range of a group's own value, by field."""


_OF_A_GROUP = {
    "streams.session.timeout.ms": "session_timeout_ms",
    "streams.heartbeat.interval.ms": "heartbeat_interval_ms",
    "streams.num.standby.replicas": "standby_replicas",
    "streams.num.warmup.replicas": "warmup_replicas",
    "streams.acceptable.recovery.lag": "acceptable_recovery_lag",
    "streams.task.offset.interval.ms": "task_offset_interval_ms",
    "streams.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
    "streams.assignment.interval.ms": "assignment_interval_ms",
}
"""The numbers that a group may override."""
_ASSIGNOR = "streams.assignor.name"


def build_streams_settings(config: BrokerConfig) -> StreamsGroupSettings:
    """Return the streams group settings of the broker's configuration."""
    return StreamsGroupSettings(
        session_timeout_ms=config.group_streams_session_timeout_ms,
        heartbeat_interval_ms=config.group_streams_heartbeat_interval_ms,
        max_size=config.group_streams_max_size,
        assignor=config.group_streams_assignors[0],
        standby_replicas=config.group_streams_num_standby_replicas,
        warmup_replicas=config.group_streams_num_warmup_replicas,
        acceptable_recovery_lag=config.group_streams_acceptable_recovery_lag,
        task_offset_interval_ms=config.group_streams_task_offset_interval_ms,
        initial_rebalance_delay_ms=config.group_streams_initial_rebalance_delay_ms,
        assignment_interval_ms=config.group_streams_assignment_interval_ms,
        ranges={
            "session_timeout_ms": (
                config.group_streams_min_session_timeout_ms,
                config.group_streams_max_session_timeout_ms,
            ),
            "heartbeat_interval_ms": (
                config.group_streams_min_heartbeat_interval_ms,
                config.group_streams_max_heartbeat_interval_ms,
            ),
            "assignment_interval_ms": (
                config.group_streams_min_assignment_interval_ms,
                config.group_streams_max_assignment_interval_ms,
            ),
            "standby_replicas": (0, config.group_streams_max_standby_replicas),
            "warmup_replicas": (0, config.group_streams_max_warmup_replicas),
            "task_offset_interval_ms": (config.group_streams_min_task_offset_interval_ms, _MOST),
        },
    )


def overlay_streams(settings: StreamsGroupSettings, own: Mapping[str, str]) -> StreamsGroupSettings:
    """Return the settings of a group with settings of its own, by Kafka's names."""
    numbers = own_numbers(own, _OF_A_GROUP, lambda name: settings.ranges.get(name, (0, _MOST)))
    return msgspec.structs.replace(settings, assignor=own.get(_ASSIGNOR) or settings.assignor, **numbers)


def assignment_configs(settings: StreamsGroupSettings) -> dict[str, str]:
    """Return the configuration of assignments by Kafka's names. A change of it triggers a new assignment."""
    return {"num.standby.replicas": str(settings.standby_replicas)}
