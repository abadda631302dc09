"""Consequences of a requested partition change: its leader, its eligible leader replicas, the end of its reassignment
(Kafka's PartitionChangeBuilder).

Owns only these equations. `before` is the current partition and `wanted` is the requested one::

    after           = wanted, or the partition at the end of its reassignment if the wanted isr allows that
    eligible        = (eligible + isr of before) - isr of after - replicas that lost their log,
                      and empty if isr has min.insync.replicas (KIP-966)
    leader          = the one that `elections` finds; an eligible leader becomes the isr, and so does an unclean
                      leader, which has to recover (KIP-704)
    isr             = isr of before if it would be empty and eligible leader replicas are not enabled
    last known      = (leader of before) while there is no leader, and empty with a leader

A record with a leader increments the leader epoch. It has a leader if the leader changes, or if a replica is removed,
so that this replica notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.cluster.elections import Election, ElectionRules, elect
from pybroker.controller.cluster.reassignments import completed
from pybroker.metadata.image import NO_LEADER
from pybroker.metadata.replica_directories import directory_of
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord

if TYPE_CHECKING:
    from collections.abc import Collection

    from pybroker.controller.cluster.elections import Usable
    from pybroker.metadata.image import PartitionImage

RECOVERING = 1


def build_change(
    topic_id: bytes,
    index: int,
    before: PartitionImage,
    wanted: PartitionImage,
    *,
    usable: Usable,
    rules: ElectionRules,
    election: Election | None = None,
    lost: Collection[int] = (),
) -> PartitionChangeRecord | None:
    """Return the change from `before` to `wanted` with its consequences; None if nothing changes.

    The election type defaults to the topic's. Replicas that are `lost` have lost committed records.
    """
    after = completed(wanted)
    eligible = _eligible(before, after, rules, lost)
    if eligible != after.eligible_leader_replicas:
        after = msgspec.structs.replace(after, eligible_leader_replicas=eligible)
    last_known = before.last_known_elr if rules.has_eligible_replicas else ()
    leader, is_unclean = elect(after, usable, election or rules.election, last_known)
    isr, recovery = after.isr, after.leader_recovery_state
    if leader != before.leader and (is_unclean or leader in eligible):
        isr = (leader,)
        eligible = () if is_unclean else tuple(replica for replica in eligible if replica != leader)
        if is_unclean:
            recovery = RECOVERING
    if not isr and not rules.has_eligible_replicas:
        isr = before.isr
    change = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    if leader != before.leader or not set(before.replicas) <= set(after.replicas):
        change.leader = leader
    if isr != before.isr:
        change.isr = list(isr)
    if eligible != before.eligible_leader_replicas:
        change.eligible_leader_replicas = list(eligible)
    if recovery != before.leader_recovery_state:
        change.leader_recovery_state = recovery
    if rules.has_eligible_replicas:
        _remember_leader(change, before)
    _change_assignment(change, before, after)
    return None if change == PartitionChangeRecord(partition_id=index, topic_id=topic_id) else change


def _eligible(
    before: PartitionImage, after: PartitionImage, rules: ElectionRules, lost: Collection[int]
) -> tuple[int, ...]:
    if not rules.has_eligible_replicas or len(after.isr) >= rules.min_isr:
        # A partition with an empty isr keeps its eligible leaders when the feature is disabled.
        return () if after.isr else after.eligible_leader_replicas
    candidates = {*after.eligible_leader_replicas, *before.isr}.intersection(after.replicas)
    return tuple(sorted(candidates.difference(after.isr, lost)))


def _remember_leader(change: PartitionChangeRecord, before: PartitionImage) -> None:
    """Record the last known leader while there is no leader, and clear it when there is one."""
    if change.leader == NO_LEADER and not before.last_known_elr:
        change.last_known_elr = [before.leader]
    elif change.leader >= 0 and before.last_known_elr:
        change.last_known_elr = []


def _change_assignment(change: PartitionChangeRecord, before: PartitionImage, after: PartitionImage) -> None:
    directories = [directory_of(after, replica) for replica in after.replicas]
    if directories != [directory_of(before, replica) for replica in before.replicas]:
        change.directories = directories
    if after.replicas != before.replicas:
        change.replicas = list(after.replicas)
    if after.removing_replicas != before.removing_replicas:
        change.removing_replicas = list(after.removing_replicas)
    if after.adding_replicas != before.adding_replicas:
        change.adding_replicas = list(after.adding_replicas)
