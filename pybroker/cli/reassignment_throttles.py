"""The throttles that `pybroker reassign-partitions` sets while replicas move, and takes away afterwards.

Owns which replicas are throttled on which side (KIP-73), in the form of Kafka's configs, and the output about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.client.administration.topics import BROKER, DELETE, SET, TOPIC, ConfigChange, Reassignment, TopicPartition
from pybroker.client.java.hash_order import HashOrderedSet, string_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pybroker.client.administration.admin import Admin

MOVE_THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_LEADERS, _FOLLOWERS = REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

RUN_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)


class Move(NamedTuple):
    """The brokers that send a partition's records during a reassignment, and those that receive them."""

    sources: frozenset[int]
    destinations: frozenset[int]


def moves(
    ongoing: Mapping[TopicPartition, Reassignment],
    targets: Iterable[tuple[TopicPartition, Sequence[int]]],
    standing: Mapping[TopicPartition, Sequence[int]],
) -> dict[TopicPartition, Move]:
    """Return the moves in progress, with those of the targets."""
    found = {
        partition: Move(frozenset(one.replicas) - frozenset(one.adding), frozenset(one.adding))
        for partition, one in ongoing.items()
    }
    for partition, target in targets:
        sources = found[partition].sources if partition in found else frozenset(standing[partition])
        found[partition] = Move(sources, frozenset(target) - sources)
    return found


def topic_throttles(moving: Mapping[TopicPartition, Move]) -> dict[str, tuple[str, str]]:
    """Return the throttled replicas of each topic, leaders and followers, as partition:broker."""
    return {
        topic: (
            _replicas(moving, topic, lambda move: move.sources),
            _replicas(moving, topic, lambda move: move.destinations),
        )
        for topic in sorted({partition.topic for partition in moving})
    }


def _replicas(moving: Mapping[TopicPartition, Move], topic: str, side: Callable[[Move], frozenset[int]]) -> str:
    # Sorted as text, as in Kafka's tool.
    return ",".join(
        sorted(
            f"{partition.partition}:{broker}"
            for partition, move in moving.items()
            if partition.topic == topic
            for broker in side(move)
        )
    )


def throttle_replication(admin: Admin, moving: Mapping[TopicPartition, Move], rate: int) -> None:
    """Throttle the moves to `rate` bytes per second at each broker, in and out."""
    for topic, (leaders, followers) in topic_throttles(moving).items():
        changes = [ConfigChange(_LEADERS, leaders, SET), ConfigChange(_FOLLOWERS, followers, SET)]
        admin.alter_configs(topic, changes, TOPIC)
    for broker in sorted({broker for move in moving.values() for broker in move.sources | move.destinations}):
        admin.alter_configs(str(broker), [ConfigChange(name, str(rate), SET) for name in RATES], BROKER)
    print(f"The inter-broker throttle limit was set to {rate} B/s")


def throttle_directories(admin: Admin, brokers: Iterable[int], rate: int) -> None:
    """Throttle copies between a broker's log directories to `rate` bytes per second."""
    for broker in sorted(set(brokers)):
        admin.alter_configs(str(broker), [ConfigChange(MOVE_THROTTLE, str(rate), SET)], BROKER)
    print(f"The replica-alter-dir throttle limit was set to {rate} B/s")


def clear_throttles(admin: Admin, brokers: Sequence[int], topics: Iterable[str]) -> None:
    """Remove every throttle of brokers and topics."""
    listed = ",".join(map(str, brokers))
    print(f"Clearing broker-level throttles on broker{'' if len(brokers) == 1 else 's'} {listed}")
    for broker in brokers:
        changes = [ConfigChange(name, None, DELETE) for name in (*RATES, MOVE_THROTTLE)]
        admin.alter_configs(str(broker), changes, BROKER)
    ordered = list(HashOrderedSet(string_hash, topics))
    print(f"Clearing topic-level throttles on topic{'' if len(ordered) == 1 else 's'} {','.join(ordered)}")
    for topic in ordered:
        admin.alter_configs(topic, [ConfigChange(name, None, DELETE) for name in REPLICAS], TOPIC)
