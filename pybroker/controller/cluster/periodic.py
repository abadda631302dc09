"""Periodic work of the controller: elections of preferred replicas, unclean elections for partitions without a leader
whose topics allow it, and NoOpRecords, which show that the controller is alive.

Owns the intervals, and the size of one decision. The next part is decided by a separate event, so that requests are
handled in between. `elections` computes the leaders.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pybroker.controller.cluster.availability import Rules
from pybroker.controller.cluster.brokers import build_graces
from pybroker.controller.cluster.delegation_tokens import first_sweep
from pybroker.controller.cluster.elections import Election
from pybroker.controller.cluster.events import BalanceLeaders, ElectUncleanly, WriteNoOp
from pybroker.controller.cluster.log_directories import usable_brokers
from pybroker.controller.cluster.partition_changes import build_change
from pybroker.controller.cluster.settings import NEVER
from pybroker.machine.machine import Outcome, Timer
from pybroker.metadata.image import NO_LEADER
from pybroker.protocol.messages.records.no_op import NoOpRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.partition_index import PartitionKey
    from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
    from pybroker.protocol.schema import Message

MAX_ELECTIONS = 1000
"""Maximum number of elections in one decision; Kafka's `MAX_ELECTIONS_PER_IMBALANCE`."""
_BALANCE, _UNCLEAN, _NO_OP = "leader balance", "unclean elections", "no-op record"


def build_timers(image: MetadataImage, settings: ClusterSettings, now: int, *, epoch_ms: int) -> list[Timer]:
    """Return the timers that a new active controller starts with; `now + epoch_ms` is the time of day."""
    periodic = (
        (_BALANCE, settings.imbalance_check_interval_ms, BalanceLeaders()),
        (_UNCLEAN, settings.unclean_election_interval_ms, ElectUncleanly()),
        (_NO_OP, settings.no_op_interval_ms, WriteNoOp()),
    )
    due = [Timer(key, now + interval, event) for key, interval, event in periodic if interval != NEVER]
    return [*build_graces(image, settings, now), *due, *first_sweep(settings, now, epoch_ms)]


def balance_leaders(
    image: MetadataImage, event: BalanceLeaders, settings: ClusterSettings, now: int
) -> Outcome[Message, None]:
    """Elect preferred replicas of brokers whose imbalance exceeds the configured percentage."""
    brokers = event.brokers or _imbalanced(image, settings.imbalance_percentage)
    by_id, index = image.topics.by_id, image.topics.index
    keys = [
        (topic_id, number)
        for topic_id, number in index.displaced - index.leaderless
        if by_id[topic_id].partitions[number].replicas[0] in brokers
    ]
    records = _elect(image, settings, sorted(keys), Election.PREFERRED)
    if len(records) == MAX_ELECTIONS:
        return Outcome(tuple(records), None, (Timer(_BALANCE, now, BalanceLeaders(brokers)),))
    next_check = Timer(_BALANCE, now + settings.imbalance_check_interval_ms, BalanceLeaders())
    return Outcome(tuple(records), None, (next_check,))


def elect_uncleanly(
    image: MetadataImage, _event: ElectUncleanly, settings: ClusterSettings, now: int
) -> Outcome[Message, None]:
    """Elect leaders that may lack records for partitions without a leader, if their topic allows it."""
    rules, by_id = Rules(image, settings), image.topics.by_id
    keys = [key for key in sorted(image.topics.index.leaderless) if rules(by_id[key[0]]).is_unclean]
    records = _elect(image, settings, keys, Election.UNCLEAN)
    wait = 0 if len(records) == MAX_ELECTIONS else settings.unclean_election_interval_ms
    return Outcome(tuple(records), None, (Timer(_UNCLEAN, now + wait, ElectUncleanly()),))


def write_no_op(settings: ClusterSettings, now: int) -> Outcome[Message, None]:
    """Write a NoOpRecord (KIP-835)."""
    return Outcome((NoOpRecord(),), None, (Timer(_NO_OP, now + settings.no_op_interval_ms, WriteNoOp()),))


def _imbalanced(image: MetadataImage, percentage: int) -> frozenset[int]:
    """Return the brokers that do not lead more than `percentage` of the partitions that prefer them."""
    topics = image.topics
    if not topics.index.displaced:
        return frozenset()
    preferred, displaced = Counter[int](), Counter[int]()
    for topic in topics.by_id.values():
        for partition in topic.partitions.values():
            first = partition.replicas[0]
            preferred[first] += 1
            if partition.leader not in (first, NO_LEADER):
                displaced[first] += 1
    return frozenset(broker for broker, count in displaced.items() if count * 100 > preferred[broker] * percentage)


def _elect(
    image: MetadataImage, settings: ClusterSettings, keys: Iterable[PartitionKey], election: Election
) -> list[PartitionChangeRecord]:
    """Return the first `MAX_ELECTIONS` changes of these partitions."""
    usable, rules, by_id = usable_brokers(image), Rules(image, settings), image.topics.by_id
    records: list[PartitionChangeRecord] = []
    for topic_id, index in keys:
        topic = by_id[topic_id]
        partition = topic.partitions[index]
        change = build_change(
            topic_id, index, partition, partition, usable=usable, rules=rules(topic), election=election
        )
        if change is not None:
            records.append(change)
            if len(records) == MAX_ELECTIONS:
                break
    return records
