"""Offsets that members and others commit: how long their metadata may be, and how long they are kept."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group.events import CommitOffsets
from pybroker.coordinator.group.log import encode_records
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.offsets import utf16_length
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.groups import group_settings

LENGTHS = [("", 0), ("abcd", 4), ("äöü", 3), ("\uffff", 1), ("\U00010000", 2), ("a\U0001f600b", 4)]


def commit(metadata: str, most: int) -> tuple[int, int]:
    """Commit an offset with metadata; the code, and how many records are written."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=metadata)
    topics = [OffsetCommitRequestTopic(name="t", topic_id=b"t" * 16, partitions=[partition])]
    machine = GroupMachine(group_settings(offset_metadata_max_bytes=most))
    outcome: Any = machine.handle(CommitOffsets(OffsetCommitRequest(group_id="g", topics=topics), 9), 1_000)
    return outcome.reply.topics[0].partitions[0].error_code, len(outcome.records)


@pytest.mark.parametrize(("text", "length"), LENGTHS)
def test_a_texts_length_is_javas(text: str, length: int) -> None:
    assert utf16_length(text) == length


@pytest.mark.parametrize(("text", "length"), LENGTHS[1:])
def test_metadata_is_measured_in_units_of_utf_16(text: str, length: int) -> None:
    assert commit(text, length) == (ErrorCode.NONE, 1)
    assert commit(text, length - 1) == (ErrorCode.OFFSET_METADATA_TOO_LARGE, 0)


@pytest.mark.parametrize(
    ("retention_ms", "expires"), [(-1, -1), (5, 1_005), (2**63 - 1_001, 2**63 - 1), (2**63 - 1, 2**63 - 1)]
)
def test_an_offset_expires_at_a_time_that_its_record_can_say(retention_ms: int, expires: int) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(group_id="g", retention_time_ms=retention_ms, topics=topics)
    outcome: Any = GroupMachine(group_settings()).handle(CommitOffsets(request, 4), 1_000)
    assert [record.value.expire_timestamp for record in outcome.records] == [expires]
    assert encode_records(outcome.records, 1_000, codec=0, max_batch_bytes=1_000)
