"""Who leads a partition: one election, and the partitions that a broker which comes or goes concerns.

Owns the arithmetic of one election (Kafka's PartitionChangeBuilder)::

    candidate       = a replica in the isr, or of the eligible leader replicas where the isr is empty, that is usable
    leader          = the leader there is if it is a candidate, else the first candidate in the order of the replicas,
                      else the last known leader where the isr and the eligible leader replicas are empty (KIP-966),
                      else, uncleanly, the first replica that is usable, else nobody
    preferred       = the first replica if it is a candidate, or the leader as above, but never uncleanly

and which partitions are checked when a broker leaves or returns. What else changes with the leader is the arithmetic
of `partition_changes`. A replica is usable where its broker is and the log directory that it lies in works (KIP-858).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.metadata.image import NO_LEADER
from pybroker.metadata.replica_directories import UNASSIGNED_DIRECTORY, directory_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.metadata.image import MetadataImage, PartitionImage

    Usable = Callable[[int, bytes], bool]
    """Whether a broker can lead what lies in this directory of its."""


class Election(Enum):
    """How far an election may go to find a leader."""

    ONLINE = "online"
    """Keep the leader, or take another one that loses nothing."""
    PREFERRED = "preferred"
    """The first replica, where it loses nothing."""
    UNCLEAN = "unclean"
    """Anybody who is there, where nobody is without loss."""


class ElectionRules(msgspec.Struct, frozen=True):
    """What a topic's settings and the cluster's features say about the elections of its partitions."""

    min_isr: int = 1
    """`min.insync.replicas`, and no more than there are replicas."""
    has_eligible_replicas: bool = False
    """Whether eligible leader replicas are kept: `eligible.leader.replicas.version` is 1 (KIP-966)."""
    is_unclean: bool = False
    """`unclean.leader.election.enable`."""

    @property
    def election(self) -> Election:
        """The election that nobody asked for."""
        return Election.UNCLEAN if self.is_unclean else Election.ONLINE


DEFAULT_RULES = ElectionRules()


class Elected(NamedTuple):
    """What an election came to."""

    leader: int
    is_unclean: bool = False


def elect(
    partition: PartitionImage,
    usable: Usable,
    election: Election = Election.ONLINE,
    last_known: tuple[int, ...] = (),
) -> Elected:
    """Return the leader that a partition of this isr, these replicas and eligible replicas gets.

    `last_known` is the last known leader, if it may be elected.
    """
    isr, eligible = partition.isr, partition.eligible_leader_replicas
    candidates = isr or eligible

    def is_usable(replica: int) -> bool:
        there = replica in partition.replicas
        return usable(replica, directory_of(partition, replica) if there else UNASSIGNED_DIRECTORY)

    if election is Election.PREFERRED and partition.replicas[0] in candidates and is_usable(partition.replicas[0]):
        return Elected(partition.replicas[0])
    if partition.leader in candidates and is_usable(partition.leader):
        return Elected(partition.leader)
    for replica in partition.replicas:
        if replica in candidates and is_usable(replica):
            return Elected(replica)
    if not candidates and len(last_known) == 1 and is_usable(last_known[0]):
        return Elected(last_known[0], is_unclean=True)
    if election is Election.UNCLEAN:
        for replica in partition.replicas:
            if is_usable(replica):
                return Elected(replica, is_unclean=True)
    return Elected(NO_LEADER)


def leads_anything(image: MetadataImage, broker: int) -> bool:
    """Return whether the broker leads a partition."""
    by_id = image.topics.by_id
    keys = image.topics.index.by_broker.get(broker, ())
    return any(by_id[topic_id].partitions[index].leader == broker for topic_id, index in keys)
