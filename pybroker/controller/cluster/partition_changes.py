"""What changes of a partition besides what was asked for: its leader, its eligible leader replicas, the end of its
reassignment (Kafka's PartitionChangeBuilder).

Owns the arithmetic alone, `before` being the partition as it is and `wanted` as it shall be::

    after           = wanted, or the partition at the end of its reassignment where the wanted isr allows that
    eligible        = (eligible + isr of before) - isr of after - those that lost their log,
                      and nobody where isr has min.insync.replicas (KIP-966)
    leader          = the one that `elections` finds; an eligible one is the isr from then on, and so is one found
                      uncleanly, which has to recover (KIP-704)
    isr             = that of before where it would be empty and eligible leader replicas are not kept
    last known      = (leader of before) when there is no leader any more, and nobody when there is one again

A named leader begins a leader epoch. It is named where it changes, and where a replica has left: that one must notice.
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
    """Return the change from `before` to `wanted` with what follows from it; None where nothing changes.

    The election is the topic's own where none is named. Replicas that are `lost` have forgotten what was committed.
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
        # A partition whose isr is empty keeps who may lead it when the feature is gone.
        return () if after.isr else after.eligible_leader_replicas
    candidates = {*after.eligible_leader_replicas, *before.isr}.intersection(after.replicas)
    return tuple(sorted(candidates.difference(after.isr, lost)))


def _remember_leader(change: PartitionChangeRecord, before: PartitionImage) -> None:
    """Note the last leader when there is none any more, and forget it when somebody leads."""
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
