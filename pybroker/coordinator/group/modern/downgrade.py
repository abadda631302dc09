"""Downgrade of a consumer group to a classic group, when the last member of the consumer protocol leaves.

Owns the conditions and the conversion of members. The epoch becomes the generation, and the members' current partitions
become the assignment of their leader. Unless all members have reached their targets, they rebalance afterwards. Kafka
uses the targets as assignment instead, which a member that reconciles does not have yet
(`docs/adr/0016-where-consumer-groups-differ-from-kafkas.md`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.classic.draft import GroupDraft
from pybroker.coordinator.group.classic.group import CONSUMER_PROTOCOL, ClassicGroup, subscribed_topics
from pybroker.coordinator.group.classic.members import ClassicMember as MemberAfter
from pybroker.coordinator.group.classic.rebalance import prepare_rebalance
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.ids import Generation, InstanceId, MemberId
from pybroker.coordinator.group.modern.classic_assignment import encode_assignment
from pybroker.coordinator.group.modern.records import build_group_tombstones
from pybroker.coordinator.group.reconciled.timers import cancel_timers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.coordinator.group.modern.decision import Decision
    from pybroker.coordinator.group.modern.group import ConsumerGroup
    from pybroker.coordinator.group.modern.member import Member
    from pybroker.coordinator.group.view import GroupView


def may_downgrade_without(view: GroupView, group: ConsumerGroup, leaving: Sequence[Member]) -> bool:
    """Return whether a group becomes a classic one when these members leave."""
    classic_stay = group.classic_members - sum(member.classic is not None for member in leaving)
    stay = len(group.members) - len(leaving)
    return 0 < stay == classic_stay and _may_downgrade(view, stay)


def may_downgrade_replacing(view: GroupView, group: ConsumerGroup, replaced: Member) -> bool:
    """Return whether a group becomes a classic one when a static member rejoins with the classic protocol."""
    only_one = replaced.classic is None and group.classic_members == len(group.members) - 1
    return only_one and _may_downgrade(view, len(group.members))


def downgrade_without(decision: Decision, view: GroupView, leaving: Sequence[Member], now: int) -> None:
    """Convert the remaining members to a classic group; they rebalance."""
    group = decision.group
    removed = {member.member_id for member in leaving}
    stay = [member for member_id, member in group.members.items() if member_id not in removed]
    why = f"Downgrade group {group.id} from consumer to classic for member leaving."
    downgrade(decision, view, stay, why, now)


def downgrade(decision: Decision, view: GroupView, members: Sequence[Member], why: str | None, now: int) -> None:
    """Convert `members`, all of the classic protocol, to a classic group; it rebalances if `why` gives a reason."""
    group = decision.group
    *of_its_parts, of_itself = build_group_tombstones(group.id, group.members, group.regexes)
    decision.write(of_its_parts)
    decision.records.append(of_itself)
    for member_id in group.members:
        decision.timers += cancel_timers(group.id, member_id)
    stable = ClassicGroup(id=group.id, state=ClassicState.STABLE, since_ms=now, generation=Generation(group.epoch))
    draft = GroupDraft(stable, view.settings, now)
    for member in members:
        draft.add_member(_member(member), CONSUMER_PROTOCOL)
    draft.protocol = draft.select_protocol()
    draft.subscribed = subscribed_topics(draft.protocol_type, draft.protocol, draft.members.in_order())
    for before in members:
        member_id = MemberId(before.member_id)
        metadata = draft.members[member_id].metadata(draft.protocol)
        assignment = encode_assignment(before.has, metadata, view.topic_by_id)
        draft.change_member(member_id, assignment=assignment)
        draft.prolong_session(member_id)
    draft.write({after.id: after.assignment for after in draft.members.in_order()})
    if why is not None:
        prepare_rebalance(draft, why)
    outcome = draft.outcome(None)
    decision.records += outcome.records
    decision.timers += outcome.timers
    decision.responses += outcome.responses


def _may_downgrade(view: GroupView, members: int) -> bool:
    return view.settings.consumer.migration_policy.allows_downgrade and members <= view.settings.max_size


def _member(before: Member) -> MemberAfter:
    classic = before.classic
    assert classic is not None
    return MemberAfter(
        id=MemberId(before.member_id),
        instance_id=None if before.instance_id is None else InstanceId(before.instance_id),
        client_id=before.client_id,
        client_host=before.client_host,
        rebalance_timeout_ms=before.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocols=tuple((offer.name, offer.metadata) for offer in classic.protocols),
    )
