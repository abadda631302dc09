"""Sticky: as balanced as possible, and among such assignments one that moves few partitions.

Owns the user data of members, Kafka's `StickyAssignorUserData`: the partitions of a member and their generation. The
assignment is computed by `equal_subscriptions` or `unequal_subscriptions`. Where racks matter (KIP-881), members get
partitions with a replica in their rack as far as the balance allows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import Assignment, GroupMember, Racks
from pybroker.client.assignors.equal_subscriptions import Transfers, assign_equal
from pybroker.client.assignors.holdings import NO_GENERATION, Claim, Holdings
from pybroker.client.assignors.racks import NO_RACKS, Nearness
from pybroker.client.assignors.unequal_subscriptions import assign_unequal


class StickyAssignor:
    """Kafka's `sticky`: members revoke all partitions before a rebalance, and get most of them again."""

    name = "sticky"
    cooperative = False

    def __init__(self) -> None:
        self._held: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def user_data(self) -> bytes | None:
        """Return the last assignment of this member."""
        return None if self._held is None else encode_claim(self._held, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int, /) -> None:
        """Store the assignment for the next rebalance."""
        self._held, self._generation = tuple(partitions), generation

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """Assign as Kafka's assignor."""
        return self.assign_by_racks(partitions, members, NO_RACKS)

    def assign_by_racks(
        self, partitions: Mapping[str, int], members: Mapping[str, GroupMember], racks: Racks
    ) -> Assignment:
        """Assign as `assign`, with the racks of the partitions' replicas."""
        return assign_sticky(partitions, members, Holdings.of(partitions, members, _claim), racks)[0]


def assign_sticky(
    partitions: Mapping[str, int], members: Mapping[str, GroupMember], holdings: Holdings, racks: Racks
) -> tuple[Assignment, Transfers | None]:
    """Return the assignment; with equal subscriptions also the partitions that move between members."""
    nearness = Nearness(partitions, members, racks)
    if holdings.all_want_the_same:
        return assign_equal(partitions, holdings, nearness)
    return assign_unequal(partitions, members, holdings, nearness), None


def _claim(member: GroupMember) -> Claim:
    return Claim((), None) if not member.user_data else decode_claim(member.user_data)


def encode_claim(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """Encode version 1 of the user data: topics with their partitions, then the generation."""
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    parts = [struct.pack(">i", len(by_topic))]
    for topic, indexes in by_topic.items():
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si{len(indexes)}i", len(name), name, len(indexes), *indexes))
    return b"".join((*parts, struct.pack(">i", generation)))


def decode_claim(raw: bytes) -> Claim:
    """Decode user data of version 1 or 0 (without a generation). Invalid user data claims nothing."""
    try:
        partitions, offset = _read_partitions(raw)
    except (struct.error, UnicodeDecodeError):
        return Claim((), NO_GENERATION)
    generation = struct.unpack_from(">i", raw, offset)[0] if len(raw) >= offset + 4 else None
    return Claim(tuple(partitions), generation)


def _read_partitions(raw: bytes) -> tuple[list[TopicPartition], int]:
    (topics,), offset, partitions = struct.unpack_from(">i", raw, 0), 4, []
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", raw, offset)
        (name, count) = struct.unpack_from(f">{length}si", raw, offset + 2)
        offset += 2 + length + 4
        indexes = struct.unpack_from(f">{count}i", raw, offset)
        offset += 4 * count
        partitions += [TopicPartition(name.decode(), index) for index in indexes]
    return partitions, offset
