"""Where the replicas of a new topic go.

Owns the arithmetic alone, a function of the brokers and a seed::

    leader of partition p          = order[(start + p) % n]
    follower k of partition p      = order[(leader + 1 + (shift + p // n + k) % (n - 1)) % n],   k = 0 .. rf - 2

where `order` goes around the racks in turns, so that neighbours are in different racks, `start` and `shift` come from
the seed, and `n` is the number of usable brokers (Kafka's assignment of replicas without and with racks, KIP-36).
Brokers that are fenced are taken only when the others do not suffice, and never first.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.metadata.image import BrokerRegistration


class PlacementError(Exception):
    """The replicas cannot be placed; the text says why, in Kafka's words."""


def is_usable(broker: BrokerRegistration) -> bool:
    """Return whether a broker may lead and be in an ISR."""
    return not broker.fenced and not broker.in_controlled_shutdown


def place(
    brokers: Mapping[int, BrokerRegistration], partitions: int, replication_factor: int, seed: int
) -> list[tuple[int, ...]]:
    """Return the replicas of each partition, the preferred leader first; raises `PlacementError`."""
    failed = f"Unable to replicate the partition {replication_factor} time(s): "
    if replication_factor > len(brokers):
        raise PlacementError(
            f"{failed}The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered."
        )
    order = _alternate_racks(broker for broker in brokers.values() if is_usable(broker))
    if not order:
        raise PlacementError(f"{failed}All brokers are currently fenced.")
    spare = _alternate_racks(broker for broker in brokers.values() if not is_usable(broker))
    count = len(order)
    start, shift = seed % count, seed // count
    placed = []
    for partition in range(partitions):
        leader = (start + partition) % count
        replicas = [order[leader]]
        for follower in range(min(replication_factor, count) - 1):
            step = 1 + (shift + partition // count + follower) % (count - 1)
            replicas.append(order[(leader + step) % count])
        placed.append((*replicas, *spare[: replication_factor - len(replicas)]))
    return placed


def _alternate_racks(brokers: Iterable[BrokerRegistration]) -> list[int]:
    racks: dict[str | None, list[int]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack, []).append(broker.id)
    in_turns = zip_longest(*(sorted(ids) for _, ids in sorted(racks.items(), key=lambda rack: rack[0] or "")))
    return [broker for turn in in_turns for broker in turn if broker is not None]
