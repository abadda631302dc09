"""Elements of a TreeSet have the order of their keys, as long as the keys do not change."""

from __future__ import annotations

import random

import pytest

from pybroker.client.java.tree_set import TreeSet


@pytest.mark.parametrize("seed", range(20))
def test_elements_are_sorted_and_unique(seed: int) -> None:
    dice = random.Random(seed)
    numbers = [dice.randrange(60) for _ in range(100)]
    tree: TreeSet[int] = TreeSet(lambda number: (number, ""))
    for number in numbers:
        tree.add(number)
    assert list(tree) == sorted(set(numbers))
