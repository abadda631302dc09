"""The configuration of consumer groups."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.reconciled.settings import own_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.broker import BrokerConfig


class MigrationPolicy(Enum):
    """Which non-empty groups may convert between the classic and the consumer protocol; empty groups always may."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class ConsumerGroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that decisions about consumer groups read."""

    session_timeout_ms: int
    session_timeout_range_ms: tuple[int, int]
    """The allowed range of a group's own setting, as for the other ranges."""
    heartbeat_interval_ms: int
    heartbeat_interval_range_ms: tuple[int, int]
    max_size: int
    """Maximum number of members of a consumer group."""
    assignors: tuple[str, ...]
    """The assignors that members may choose; the first is the default."""
    migration_policy: MigrationPolicy
    assignment_interval_ms: int
    """Minimum time between two target assignments of a group."""
    assignment_interval_range_ms: tuple[int, int]
    regex_refresh_interval_ms: int
    """Maximum time after which patterns are resolved again."""


_OF_A_GROUP = {
    "consumer.session.timeout.ms": "session_timeout_ms",
    "consumer.heartbeat.interval.ms": "heartbeat_interval_ms",
    "consumer.assignment.interval.ms": "assignment_interval_ms",
}
"""The settings that a group may override."""


def build_consumer_settings(config: BrokerConfig) -> ConsumerGroupSettings:
    """Return the consumer group settings of the broker's configuration."""
    return ConsumerGroupSettings(
        session_timeout_ms=config.group_consumer_session_timeout_ms,
        session_timeout_range_ms=(
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_max_session_timeout_ms,
        ),
        heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
        heartbeat_interval_range_ms=(
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        ),
        max_size=config.group_consumer_max_size,
        assignors=config.group_consumer_assignors,
        migration_policy=MigrationPolicy(config.group_consumer_migration_policy.lower()),
        assignment_interval_ms=config.group_consumer_assignment_interval_ms,
        assignment_interval_range_ms=(
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
        regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
    )


def overlay(settings: ConsumerGroupSettings, own: Mapping[str, str]) -> ConsumerGroupSettings:
    """Return the settings of a group with settings of its own, by Kafka's names."""

    def limits(name: str) -> tuple[int, int]:
        low, high = getattr(settings, name.replace("_ms", "_range_ms"))
        return low, high

    return msgspec.structs.replace(settings, **own_numbers(own, _OF_A_GROUP, limits))
