"""What the configuration says about groups, in the machine's own terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.modern.settings import ConsumerGroupSettings, build_consumer_settings

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that decisions about groups read."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    """How long an empty group waits for more members after the first."""
    max_size: int
    """Most members of a classic group."""
    new_member_join_timeout_ms: int
    """A new member of a classic group that waits longer for the rebalance to end is taken for dead."""
    offset_metadata_max_bytes: int
    """Longest text that a commit may carry; Kafka counts its characters."""
    offsets_retention_ms: int
    offsets_retention_check_interval_ms: int
    consumer: ConsumerGroupSettings
    """Those of groups of KIP-848."""


def build_settings(config: BrokerConfig) -> GroupSettings:
    """Take from the broker's configuration what concerns groups."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=config.group_max_size,
        new_member_join_timeout_ms=NEW_MEMBER_JOIN_TIMEOUT_MS,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        consumer=build_consumer_settings(config),
    )


NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60_000
"""Kafka's `CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`, which is no setting there."""
