"""The leader of a partition: one election.

Owns the equations of one election (Kafka's PartitionChangeBuilder)::

    candidate       = a usable replica of the isr, or of the eligible leader replicas if the isr is empty
    leader          = the current leader if it is a candidate, else the first candidate in the order of the replicas,
                      else the last known leader if the isr and the eligible leader replicas are empty (KIP-966),
                      else, uncleanly, the first usable replica, else none
    preferred       = the first replica if it is a candidate, or the leader as above, but never uncleanly

`partition_changes` computes the consequences of a new leader. A replica is usable if its broker is usable and its log
directory is online (KIP-858).
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
    """Whether a broker can lead a replica in one of its directories, given by id."""


class Election(Enum):
    """The replicas that an election accepts as leader."""

    ONLINE = "online"
    """Keep the leader, or elect another one that lacks no committed records."""
    PREFERRED = "preferred"
    """Elect the first replica, if it lacks no committed records."""
    UNCLEAN = "unclean"
    """Elect any usable replica, if none is usable without loss."""


class ElectionRules(msgspec.Struct, frozen=True):
    """The election settings of a topic, and of the cluster's features."""

    min_isr: int = 1
    """`min.insync.replicas`, at most the number of replicas."""
    has_eligible_replicas: bool = False
    """Whether eligible leader replicas are enabled: `eligible.leader.replicas.version` is 1 (KIP-966)."""
    is_unclean: bool = False
    """`unclean.leader.election.enable`."""

    @property
    def election(self) -> Election:
        """The default election type."""
        return Election.UNCLEAN if self.is_unclean else Election.ONLINE


DEFAULT_RULES = ElectionRules()


class Elected(NamedTuple):
    """The result of an election."""

    leader: int
    is_unclean: bool = False


def elect(
    partition: PartitionImage,
    usable: Usable,
    election: Election = Election.ONLINE,
    last_known: tuple[int, ...] = (),
) -> Elected:
    """Return the leader of a partition with this isr, these replicas and eligible leader replicas.

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
