"""Committed offsets in requests: OffsetCommit, OffsetFetch and OffsetDelete in every version.

Owns the grouping by topic and both forms of OffsetFetch. Admin uses it from outside of a group, a consumer as a
member. Requests contain topic names, never ids, so that no id has to be resolved first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pybroker.client.administration.groups import OffsetAndMetadata, Offsets
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.network.connection import Connection
from pybroker.protocol.messages import offset_commit as commit
from pybroker.protocol.messages import offset_delete as delete
from pybroker.protocol.messages import offset_fetch as fetch

LAST_VERSION_WITH_TOPIC_NAMES = 9
"""OffsetCommit and OffsetFetch contain topic ids from version 10 on."""
_FIRST_VERSION_WITH_REQUIRE_STABLE = 7

Outcome = dict[TopicPartition, int]
"""Error code by partition."""


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, in the order of their first."""
    grouped: dict[str, list[int]] = {}
    for partition in partitions:
        grouped.setdefault(partition.topic, []).append(partition.partition)
    return grouped


async def commit_offsets(
    connection: Connection,
    group: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    member: tuple[str, int, str | None] = ("", -1, None),
) -> Outcome:
    """Commit offsets; `member` is (member id, generation or epoch, instance id) of a member of the group."""
    request = commit.OffsetCommitRequest(
        group_id=group,
        member_id=member[0],
        generation_id_or_member_epoch=member[1],
        group_instance_id=member[2],
        topics=[
            commit.OffsetCommitRequestTopic(
                name=topic, partitions=[_partition(i, offsets[TopicPartition(topic, i)]) for i in indexes]
            )
            for topic, indexes in by_topic(offsets).items()
        ],
    )
    response = await connection.query(request, commit.OffsetCommitResponse, LAST_VERSION_WITH_TOPIC_NAMES)
    return {TopicPartition(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}


def _partition(index: int, offset: OffsetAndMetadata) -> commit.OffsetCommitRequestPartition:
    return commit.OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


async def fetch_offsets(
    connection: Connection,
    group: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    member: tuple[str, int] = ("", -1),
    stable: bool = False,
) -> tuple[Offsets, Outcome, int]:
    """Fetch the offsets of some partitions, or of all (None): (offsets, error by partition, error of the group).

    `member` is (member id, epoch) in a group of KIP-848. With `stable` the broker returns an error for partitions
    with a pending transactional commit.
    """
    wanted = None if partitions is None else by_topic(partitions)
    request = fetch.OffsetFetchRequest(require_stable=stable)
    version = min(connection.version_of(request), LAST_VERSION_WITH_TOPIC_NAMES)
    if version < _FIRST_VERSION_WITH_REQUIRE_STABLE:
        request.require_stable = False
    if version >= fetch.FIRST_VERSION_WITH_MANY_GROUPS:
        topics = (
            None
            if wanted is None
            else [fetch.OffsetFetchRequestTopics(name=t, partition_indexes=i) for t, i in wanted.items()]
        )
        requested = fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)
        if member[1] >= 0:
            requested.member_id, requested.member_epoch = member
        request.groups = [requested]
    else:
        request.group_id = group
        request.topics = (
            None
            if wanted is None
            else [fetch.OffsetFetchRequestTopic(name=t, partition_indexes=i) for t, i in wanted.items()]
        )
    response = await connection.query(request, fetch.OffsetFetchResponse, LAST_VERSION_WITH_TOPIC_NAMES)
    found = response.groups[0] if version >= fetch.FIRST_VERSION_WITH_MANY_GROUPS else response
    offsets: Offsets = {}
    errors: Outcome = {}
    for topic in found.topics:
        for part in topic.partitions:
            partition = TopicPartition(topic.name, part.partition_index)
            if part.error_code:
                errors[partition] = part.error_code
            elif part.committed_offset >= 0:
                offsets[partition] = OffsetAndMetadata(
                    part.committed_offset, part.metadata or "", part.committed_leader_epoch
                )
    return offsets, errors, found.error_code


async def delete_offsets(
    connection: Connection, group: str, partitions: Iterable[TopicPartition]
) -> tuple[Outcome, int]:
    """Delete offsets: (error by partition, error of the group)."""
    request = delete.OffsetDeleteRequest(
        group_id=group,
        topics=[
            delete.OffsetDeleteRequestTopic(
                name=topic, partitions=[delete.OffsetDeleteRequestPartition(partition_index=i) for i in indexes]
            )
            for topic, indexes in by_topic(partitions).items()
        ],
    )
    response = await connection.query(request, delete.OffsetDeleteResponse)
    errors = {TopicPartition(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}
    return errors, response.error_code
