"""ConsumerGroupDescribe: the state of groups, their members and assignments.

Owns the format of the response. Deleted topics are left out, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import GroupIdNotFoundError
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.subscription import preferred_assignor
from pybroker.coordinator.group.reconciled.membership import find_group
from pybroker.machine.machine import Outcome
from pybroker.protocol.messages import consumer_group_describe as message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.coordinator.group.events import DescribeConsumerGroups
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.modern.member import Member, Owned
    from pybroker.coordinator.group.view import GroupView

_CLASSIC, _CONSUMER = 0, 1


def describe(
    view: GroupView, event: DescribeConsumerGroups, _now: int
) -> Outcome[Record, list[message.DescribedGroup]]:
    """Describe groups, each by itself."""
    return Outcome((), [_describe(view, group_id) for group_id in event.group_ids])


def _describe(view: GroupView, group_id: str) -> message.DescribedGroup:
    try:
        group = find_group(view, group_id, ConsumerGroup)
    except GroupIdNotFoundError as error:
        return message.DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    return message.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members.values(), view.settings.consumer.assignors),
        members=[_member(view, group, member) for _, member in sorted(group.members.items())],
    )


def _member(view: GroupView, group: ConsumerGroup, member: Member) -> message.Member:
    return message.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.has, view.topic_by_id),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), view.topic_by_id),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(partitions: Owned, names: Mapping[bytes, str]) -> message.Assignment:
    known: Iterable[tuple[str, bytes]] = ((names[topic], topic) for topic in partitions if topic in names)
    return message.Assignment(
        topic_partitions=[
            message.TopicPartitions(topic_id=topic, topic_name=name, partitions=sorted(partitions[topic]))
            for name, topic in sorted(known)
        ]
    )
