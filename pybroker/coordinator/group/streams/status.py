"""Conditions of a streams group that the response to a heartbeat reports.

Owns their codes, which are Kafka's.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


class StatusCode(IntEnum):
    """The code of a condition."""

    STALE_TOPOLOGY = 0
    """The member's topology is older than the group's."""
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    """Repartition or changelog topics do not exist yet; the broker creates them."""
    SHUTDOWN_APPLICATION = 4
    """A member has requested that all members shut down."""
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class Status(msgspec.Struct, frozen=True):
    """A condition, with its description."""

    code: StatusCode
    detail: str
