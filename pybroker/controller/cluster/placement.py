"""Placement of the replicas of new partitions.

Owns only these equations, a function of the brokers and a seed::

    leader of partition p          = order[(start + p) % n]
    candidate k of partition p     = order[(leader + 1 + (racks * (shift + p // n) + k) % (n - 1)) % n],   k = 0, 1, ...
    followers of partition p       = candidates from k = 0 on, none twice, and none in a rack that has a replica before
                                     every rack has one

where `order` alternates between the racks, so that neighbours are in different racks, `start` and `shift` are derived
from the seed, `n` is the number of usable brokers and `racks` is the number of their racks (KIP-36; without racks it is
one rack). A fenced broker is used only if its rack has no others, or if there are too few other brokers, and is never
the first replica.
"""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.metadata.image import BrokerRegistration


class PlacementError(Exception):
    """The replicas cannot be placed; the text gives the reason, in Kafka's words."""


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
            f"{len(brokers)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    order = _alternate_racks(broker for broker in brokers.values() if is_usable(broker))
    if not order:
        raise PlacementError(f"{failed}All brokers are currently fenced.")
    spare = _alternate_racks(broker for broker in brokers.values() if not is_usable(broker))
    rack_of = {broker.id: broker.rack for broker in brokers.values()}
    racks, all_racks = len({rack_of[broker] for broker in order}), len(set(rack_of.values()))
    count = len(order)
    start, shift = seed % count, seed // count
    placed = []
    for partition in range(partitions):
        leader = (start + partition) % count
        step = racks * (shift + partition // count)
        others = (order[(leader + 1 + (step + k) % (count - 1)) % count] for k in range(count - 1))
        candidates = chain((order[leader],), others, spare)
        placed.append(_spread(candidates, rack_of, all_racks, replication_factor))
    return placed


def _spread(
    candidates: Iterable[int], rack_of: Mapping[int, str | None], all_racks: int, replication_factor: int
) -> tuple[int, ...]:
    """Return the first candidate of each rack, then the skipped candidates, in their order."""
    replicas: list[int] = []
    racks: set[str | None] = set()
    passed: list[int] = []
    for candidate in candidates:
        if len(replicas) == replication_factor or (
            len(racks) == all_racks and len(replicas) + len(passed) >= replication_factor
        ):
            break
        if rack_of[candidate] in racks:
            passed.append(candidate)
        else:
            replicas.append(candidate)
            racks.add(rack_of[candidate])
    return (*replicas, *passed[: replication_factor - len(replicas)])


def _alternate_racks(brokers: Iterable[BrokerRegistration]) -> list[int]:
    racks: dict[str | None, list[int]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack, []).append(broker.id)
    in_turns = zip_longest(*(sorted(ids) for _, ids in sorted(racks.items(), key=lambda rack: rack[0] or "")))
    return [broker for turn in in_turns for broker in turn if broker is not None]
