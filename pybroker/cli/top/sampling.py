"""What a cluster says of itself at one time: ends of logs, and how far groups have come.

Owns the requests. Must not compute rates: that needs two samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.client.administration.topics import LATEST, TopicPartition
from pybroker.client.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.cli.top.clients import Client, ClientUse
    from pybroker.client.administration.admin import Admin


class GroupSample(NamedTuple):
    """One group."""

    state: str
    offsets: Mapping[TopicPartition, int]
    """Its committed offsets."""


class Sample(NamedTuple):
    """A cluster at one time."""

    at_s: float
    """Time of a monotonic clock."""
    brokers: int
    leaders: Mapping[TopicPartition, int | None]
    """The leader of every partition; None without one."""
    ends: Mapping[TopicPartition, int]
    """Log end offsets of the partitions with a leader that responds."""
    under_replicated: int
    groups: Mapping[str, GroupSample]
    groups_left_out: int
    clients: Mapping[Client, ClientUse] | None = None
    """The use of quotas by clients; None where it was not queried."""


def take_sample(admin: Admin, clock: Callable[[], float], *, internal: bool, most_groups: int) -> Sample:
    """Query the cluster. Raises ClientError. Groups with errors are omitted."""
    names = admin.list_topics(internal=internal)
    topics = admin.describe_topics(names) if names else []
    leaders: dict[TopicPartition, int | None] = {}
    under_replicated = 0
    for topic in topics:
        for partition in topic.partitions:
            has_leader = partition.leader >= 0
            leaders[TopicPartition(topic.name, partition.index)] = partition.leader if has_leader else None
            under_replicated += len(partition.isr) < len(partition.replicas)
    with_leader = [partition for partition, leader in leaders.items() if leader is not None]
    at_s = clock()
    listed = admin.list_offsets(dict.fromkeys(with_leader, LATEST)) if with_leader else {}
    ends = {partition: one.offset for partition, one in listed.items()}
    found = admin.list_groups(protocol_types=("consumer", ""))
    groups, left_out = {}, max(0, len(found) - most_groups)
    for one in found[:most_groups]:
        try:
            committed = admin.list_group_offsets(one.group_id)
        except BrokerError:
            left_out += 1
            continue
        offsets = {partition: offset.offset for partition, offset in committed.items() if offset is not None}
        groups[one.group_id] = GroupSample(one.state, offsets)
    brokers = len(admin.describe_cluster().brokers)
    return Sample(at_s, brokers, leaders, ends, under_replicated, groups, left_out)
