"""Offsets in transactions: their commit, and the end of the transaction (Kafka's `OffsetMetadataManager`).

Owns which members may commit them (KIP-447): a fenced member, or one of an older generation, may not. Must not know
whether the transaction is open: the caller verifies it with the log, which checks it again on append.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import IllegalGenerationError, StaleMemberEpochError
from pybroker.coordinator.group.offsets import utf16_length
from pybroker.coordinator.group.records import build_offset_commit
from pybroker.coordinator.group.transactional_records import (
    Marker,
    TransactionalKey,
    TransactionalRecord,
    TransactionEnd,
)
from pybroker.machine.machine import Outcome
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue
from pybroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pybroker.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.coordinator.group.events import CommitTransactionalOffsets, CompleteTransaction
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.view import GroupView
    from pybroker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


def commit(view: GroupView, event: CommitTransactionalOffsets, now: int) -> Outcome[Record, TxnOffsetCommitResponse]:
    """Decide about offsets that are applied when the transaction commits. Raises a `GroupError`.

    The commit does not prolong the member's session, as in Kafka: the producer commits, not the consumer.
    """
    request = event.request
    try:
        check = _check_commit(view, request)
        records, topics = _commit(view, event, check, now)
    except StaleMemberEpochError as error:
        # The producer's protocol has no error for member epochs.
        raise IllegalGenerationError(str(error)) from None
    return Outcome(tuple(records), TxnOffsetCommitResponse(topics=topics))


def _commit(
    view: GroupView, event: CommitTransactionalOffsets, check: Callable[[str, bytes, int], None] | None, now: int
) -> tuple[list[Record], list[TxnOffsetCommitResponseTopic]]:
    request, too_long = event.request, view.settings.offset_metadata_max_bytes
    records: list[Record] = []
    topics = []
    for topic in request.topics:
        topic_id = event.topic_ids.get(topic.name, ZERO_UUID)
        partitions = []
        for partition in topic.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            code = ErrorCode.NONE
            if 2 * len(metadata) > too_long and utf16_length(metadata) > too_long:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                if check is not None:
                    check(topic.name, topic_id, index)
                value = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=now,
                    topic_id=topic_id,
                )
                plain = build_offset_commit(request.group_id, topic.name, index, value)
                key = TransactionalKey(request.producer_id, request.producer_epoch, plain.key)
                records.append(TransactionalRecord(key, value, event.guard, plain.version))
            partitions.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=code))
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    return records, topics


def _check_commit(view: GroupView, request: TxnOffsetCommitRequest) -> Callable[[str, bytes, int], None] | None:
    group = view.group(request.group_id)
    if group is not None:
        return group.check_transactional_commit(request.member_id, request.group_instance_id, request.generation_id)
    if request.generation_id >= 0:
        raise IllegalGenerationError
    return None  # The commit creates the group: a simple one, without members.


def complete(_view: GroupView, event: CompleteTransaction, _now: int) -> Outcome[Record, None]:
    """End a producer's transaction: apply or drop its offsets. The marker is written in any case, as in Kafka."""
    end = TransactionEnd(event.producer_id, event.producer_epoch, event.committed)
    return Outcome((Marker(end, event.coordinator_epoch, event.transaction_version),), None)
