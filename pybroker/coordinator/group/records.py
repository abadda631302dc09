"""What a decision about groups consists of: records of `__consumer_offsets`, and changes that are not written down.

Owns the union of both. Must not know bytes: `log` turns records into batches and back.

A classic group lives through its rebalances in memory; what of it survives the coordinator is written when it comes to
rest (as in Kafka). Every other change of it is a `GroupChange`, which replay does not need.
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
"""Lets the value be written in the version that `GROUP_RECORDS` names."""
# One is made for each partition of each commit: by position that costs a third of what it does by name.
_offset_key = cast("Callable[[str, str, int], OffsetCommitKey]", OffsetCommitKey)

WITH_EXPIRY = 1
"""The only version of OffsetCommitValue that can say when the offset may go."""


class GroupRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of `__consumer_offsets`."""

    key: Message
    value: Message | None
    """None is a tombstone: what the key names is gone."""
    version: int = CURRENT_VERSION


def build_offset_commit(group: str, topic: str, partition: int, value: OffsetCommitValue) -> GroupRecord:
    """Make the record of a committed offset."""
    key = _offset_key(group, topic, partition)
    return GroupRecord(key, value, CURRENT_VERSION if value.expire_timestamp < 0 else WITH_EXPIRY)


def build_offset_tombstone(group: str, topic: str, partition: int) -> GroupRecord:
    """Make the record by which a committed offset goes."""
    return GroupRecord(OffsetCommitKey(group=group, topic=topic, partition=partition), None)


def build_group_tombstone(group: str) -> GroupRecord:
    """Make the record by which a classic group goes."""
    return GroupRecord(GroupMetadataKey(group=group), None)
