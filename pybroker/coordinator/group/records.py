"""Records of decisions about groups: those of `__consumer_offsets`, and changes that are not written.

Owns the union of both. Must not know bytes: `log` encodes and decodes batches.

The rebalances of a classic group are kept in memory only. A record is written when a rebalance is complete, as in
Kafka. Every other change of it is a `GroupChange`, which replay does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from pybroker.protocol.messages.group_records.group_metadata import GroupMetadataKey
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.protocol.schema import Message

CURRENT_VERSION = -1
"""The value is written in the version that `GROUP_RECORDS` names."""
# One is created for each committed partition: positional arguments cost a third of keyword arguments.
_offset_key = cast("Callable[[str, str, int], OffsetCommitKey]", OffsetCommitKey)

WITH_EXPIRY = 1
"""The only version of OffsetCommitValue with an expiry timestamp of the offset."""


class GroupRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of `__consumer_offsets`."""

    key: Message
    value: Message | None
    """None is a tombstone: it deletes the key's entry."""
    version: int = CURRENT_VERSION


def build_offset_commit(group: str, topic: str, partition: int, value: OffsetCommitValue) -> GroupRecord:
    """Return the record of a committed offset."""
    key = _offset_key(group, topic, partition)
    return GroupRecord(key, value, CURRENT_VERSION if value.expire_timestamp < 0 else WITH_EXPIRY)


def build_offset_tombstone(group: str, topic: str, partition: int) -> GroupRecord:
    """Return the record that deletes a committed offset."""
    return GroupRecord(OffsetCommitKey(group=group, topic=topic, partition=partition), None)


def build_group_tombstone(group: str) -> GroupRecord:
    """Return the record that deletes a classic group."""
    return GroupRecord(GroupMetadataKey(group=group), None)
