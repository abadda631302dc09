from __future__ import annotations

from pybroker.cli.java_order import in_java_order, partition_hash, text_hash


def test_hashes_are_javas() -> None:
    # "retention.ms".hashCode() and others, as Java 17 prints them.
    assert text_hash("") == 0
    assert text_hash("a") == 97
    assert text_hash("hello") == 99162322
    assert text_hash("polygenelubricants") == 0x80000000
    assert text_hash("\U0001f600") == (31 * 0xD83D + 0xDE00)


def test_a_partitions_hash_is_kafkas() -> None:
    assert partition_hash("a", 0) == 31 * 31 + 97
    assert partition_hash("a", 1) == 31 * 32 + 97


def test_entries_come_bucket_by_bucket() -> None:
    assert in_java_order([16, 1, 0, 17], lambda number: number) == [16, 0, 1, 17]
    # Thirteen are too many for sixteen buckets.
    assert in_java_order([32, *range(12, -1, -1)], lambda number: number) == [32, *range(13)]
