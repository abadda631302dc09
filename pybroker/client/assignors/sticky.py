"""Sticky: as even as can be, and of all such assignments one that moves few partitions.

Owns what the members of such a group send each other, Kafka's `StickyAssignorUserData`: what each has, by which
generation. The assignment itself is `equal_wishes`' or `unequal_wishes`' matter. Where
racks matter (KIP-881) partitions go to members near to them as far as it stays even.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import Assignment, GroupMember, Racks
from pybroker.client.assignors.equal_wishes import Transfers, assign_equal
from pybroker.client.assignors.holdings import NO_GENERATION, Claim, Holdings
from pybroker.client.assignors.racks import NO_RACKS, Nearness
from pybroker.client.assignors.unequal_wishes import assign_unequal


class StickyAssignor:
    """Kafka's `sticky`: members give everything back before a rebalance, and get most of it again."""

    name = "sticky"
    cooperative = False

    def __init__(self) -> None:
        self._held: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def user_data(self) -> bytes | None:
        """What this member got last."""
        return None if self._held is None else encode_claim(self._held, self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int, /) -> None:
        """Remember it for the next rebalance."""
        self._held, self._generation = tuple(partitions), generation

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """As Kafka's assignor."""
        return self.assign_by_racks(partitions, members, NO_RACKS)

    def assign_by_racks(
        self, partitions: Mapping[str, int], members: Mapping[str, GroupMember], racks: Racks
    ) -> Assignment:
        """The same, with the racks of the partitions' replicas."""
        return assign_sticky(partitions, members, Holdings.of(partitions, members, _claim), racks)[0]


def assign_sticky(
    partitions: Mapping[str, int], members: Mapping[str, GroupMember], holdings: Holdings, racks: Racks
) -> tuple[Assignment, Transfers | None]:
    """Who gets what; with equal wishes also what goes from one to another."""
    nearness = Nearness(partitions, members, racks)
    if holdings.all_want_the_same:
        return assign_equal(partitions, holdings, nearness)
    return assign_unequal(partitions, members, holdings, nearness), None


def _claim(member: GroupMember) -> Claim:
    return Claim((), None) if not member.user_data else decode_claim(member.user_data)


def encode_claim(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """Version 1 of the user data: topics with their partitions, then the generation."""
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    parts = [struct.pack(">i", len(by_topic))]
    for topic, indexes in by_topic.items():
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si{len(indexes)}i", len(name), name, len(indexes), *indexes))
    return b"".join((*parts, struct.pack(">i", generation)))


def decode_claim(raw: bytes) -> Claim:
    """Read user data of version 1 or 0 (without a generation); what cannot be read claims nothing."""
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
