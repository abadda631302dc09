"""The target assignment: the partitions that each member should have, computed again when the group's epoch increases.

Owns the assignor's input, and the records of its result: only changed targets, and the epoch. The minimum interval is
`group.consumer.assignment.interval.ms` or the group's own setting, so that members that join together need one
assignment (KIP-1263); until then members reconcile with the last target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.modern.assignors import ASSIGNORS
from pybroker.coordinator.group.modern.assignors.spec import GroupSpec, MemberSpec
from pybroker.coordinator.group.modern.records import build_target_epoch
from pybroker.coordinator.group.modern.subscription import is_homogeneous, preferred_assignor, present, subscribed_ids

if TYPE_CHECKING:
    from pybroker.coordinator.group.modern.decision import Decision
    from pybroker.coordinator.group.modern.group import ConsumerGroup
    from pybroker.coordinator.group.view import GroupView


def maybe_update_target(decision: Decision, view: GroupView, now: int) -> None:
    """Compute a new target if one is due."""
    group = decision.group
    interval_ms = view.consumer_settings(group.id).assignment_interval_ms
    if group.assignment_epoch >= group.epoch or not group.may_assign(interval_ms, now):
        return
    assign = ASSIGNORS[preferred_assignor(group.members.values(), view.settings.consumer.assignors)]
    result = assign(build_spec(group, view))
    targets = {member_id: result.get(member_id, {}) for member_id in sorted(group.members)}
    decision.write_targets({it: target for it, target in targets.items() if target != group.targets.get(it)})
    decision.write([build_target_epoch(group.id, group.epoch, now)])


def build_spec(group: ConsumerGroup, view: GroupView) -> GroupSpec:
    """Return the assignor's input; members are sorted by id, so that every broker computes the same assignment."""
    there = view.topics
    members = {
        member_id: MemberSpec(
            subscribed_ids(member, group.regexes, there),
            group.targets.get(member_id, {}),
            member.instance_id,
        )
        for member_id, member in sorted(group.members.items())
    }
    topics = (there[name] for name in present(group.subscribed_topics, there))
    return GroupSpec(
        members,
        {topic.topic_id: topic.partitions for topic in topics},
        is_homogeneous(group.members.values()),
    )
