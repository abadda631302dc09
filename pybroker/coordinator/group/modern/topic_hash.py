"""The hash of a group's topics (KIP-1101).

    topic   XXH3-64 of: a zero byte, id, name, number of partitions,
            and for each partition its number and the racks of its replicas in order, each with its length
    group   XXH3-64 of the topics' hashes in the order of their names; 0 without topics

Owns that equation, byte for byte Kafka's: numbers are little-endian, a name is its UTF-16 units followed by their
number, a rack is preceded by that number as well. The group's record contains the group's hash. So after a load, or on
another broker, the group only rebalances if its topics have changed meanwhile.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def topic_hash(name: str, topic_id: bytes, racks: Sequence[Sequence[str]]) -> int:
    """Return the hash of a topic; `racks` are those of the replicas of each partition, in any order."""
    parts = [b"\0", topic_id[7::-1], topic_id[:7:-1], _text(name), pack("<i", len(racks))]
    for partition, of_partition in enumerate(racks):
        parts.append(pack("<i", partition))
        for rack in sorted(of_partition, key=_order):
            parts += (pack("<i", _units(rack)), _text(rack))
    return _signed(xxh3_64_intdigest(b"".join(parts)))


def group_hash(hashes: Mapping[str, int]) -> int:
    """Return the hash of a group's topics, given their hashes by name."""
    if not hashes:
        return 0
    return _signed(xxh3_64_intdigest(b"".join(pack("<q", hashes[name]) for name in sorted(hashes, key=_order))))


def _order(text: str) -> bytes:
    """Return the sort key of a text: Java compares UTF-16 units."""
    return text.encode("utf-16-be")


def _text(text: str) -> bytes:
    return text.encode("utf-16-le") + pack("<i", _units(text))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
