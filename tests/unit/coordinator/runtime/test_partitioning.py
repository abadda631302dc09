"""Groups are dealt to partitions as Java deals them."""

from __future__ import annotations

import pytest

from pybroker.coordinator.runtime.partitioning import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", -1_906_497_762),
        ("polygenelubricants", -(1 << 31)),
        ("Grüße", 69_215_351),
        ("\U0001f600", 1_772_899),
    ],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_the_smallest_hash_has_no_absolute_value_and_goes_to_partition_0() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_a_partition_is_one_of_those_there_are() -> None:
    assert {partition_of(f"group-{number}", 7) for number in range(1000)} == set(range(7))
