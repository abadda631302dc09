"""The configuration of groups, as the machine uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.modern.settings import ConsumerGroupSettings, build_consumer_settings, overlay
from pybroker.coordinator.group.streams.settings import (
    StreamsGroupSettings,
    build_streams_settings,
    overlay_streams,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.broker import BrokerConfig


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that decisions about groups read."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    """How long an empty group waits for more members after the first."""
    max_size: int
    """Maximum number of members of a classic group."""
    new_member_join_timeout_ms: int
    """A new member of a classic group whose JoinGroup is delayed longer is removed."""
    offset_metadata_max_bytes: int
    """Maximum length of a commit's metadata; Kafka counts characters."""
    offsets_retention_ms: int
    offsets_retention_check_interval_ms: int
    consumer: ConsumerGroupSettings
    """The configuration of groups of KIP-848."""
    streams: StreamsGroupSettings
    """The configuration of groups of KIP-1071."""


class OwnSettings(msgspec.Struct, frozen=True):
    """The settings of one group that has settings of its own."""

    consumer: ConsumerGroupSettings
    streams: StreamsGroupSettings


def build_settings(config: BrokerConfig) -> GroupSettings:
    """Return the group settings of the broker's configuration."""
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
        streams=build_streams_settings(config),
    )


def build_own_settings(settings: GroupSettings, own: Mapping[str, str]) -> OwnSettings:
    """Return the settings of a group with settings of its own, by Kafka's names."""
    return OwnSettings(overlay(settings.consumer, own), overlay_streams(settings.streams, own))


NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60_000
"""Kafka's `CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`, which is not configurable there."""
