"""The order of Java's hash maps, in values taken from Java."""

from __future__ import annotations

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.java.hash_order import HashOrderedSet, in_hash_order, partition_hash, string_hash


def test_strings_hash_as_in_java() -> None:
    assert string_hash("") == 0
    assert string_hash("Aa") == string_hash("BB") == 2112
    assert string_hash("polygenelubricants") == 1 << 31, "the smallest negative number in Java"
    assert partition_hash(TopicPartition("Aa", 3)) == 31 * 34 + 2112


def test_a_walk_goes_by_bucket_and_then_by_age() -> None:
    assert in_hash_order(["b", "a", "BB", "Aa"]) == ["BB", "Aa", "a", "b"]


def test_the_table_grows_and_does_not_shrink() -> None:
    numbers = HashOrderedSet(int, range(20))
    for number in range(2, 20):
        numbers.remove(number)
    numbers.add(32)
    numbers.add(16)
    assert list(numbers) == [0, 32, 1, 16], "a table of 32 buckets: 32 shares the first with 0, 16 has its own"
    assert (numbers.first(), len(numbers)) == (0, 4)
