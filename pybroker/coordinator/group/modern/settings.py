"""What the configuration says about consumer groups."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.broker import BrokerConfig


class MigrationPolicy(Enum):
    """Which groups with members may change between the classic and the consumer protocol; empty ones always may."""

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
    """The settings that decisions about consumer groups read."""

    session_timeout_ms: int
    session_timeout_range_ms: tuple[int, int]
    """What a group of its own settings may have, as with the other ranges."""
    heartbeat_interval_ms: int
    heartbeat_interval_range_ms: tuple[int, int]
    max_size: int
    """Most members of a consumer group."""
    assignors: tuple[str, ...]
    """Those that members may wish for; the first is used where none does."""
    migration_policy: MigrationPolicy
    assignment_interval_ms: int
    """Shortest time from one target assignment of a group to the next."""
    assignment_interval_range_ms: tuple[int, int]
    regex_refresh_interval_ms: int
    """Longest time after which patterns are looked up again."""


_OF_A_GROUP = {
    "consumer.session.timeout.ms": "session_timeout_ms",
    "consumer.heartbeat.interval.ms": "heartbeat_interval_ms",
    "consumer.assignment.interval.ms": "assignment_interval_ms",
}
"""What a group may have of its own."""


def build_consumer_settings(config: BrokerConfig) -> ConsumerGroupSettings:
    """Take from the broker's configuration what concerns consumer groups."""
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
    """Return the settings of a group that has some of its own, by Kafka's names.

    They were within the broker's bounds when they were given. Where the broker was started with others since, the
    nearest value that these allow is in force, as in Kafka.
    """
    changes = {}
    for key, name in _OF_A_GROUP.items():
        text = own.get(key)
        if text is not None:
            low, high = getattr(settings, name.replace("_ms", "_range_ms"))
            changes[name] = min(max(int(text), low), high)
    return msgspec.structs.replace(settings, **changes)
