"""A PriorityQueue returns its elements by key. Equal keys have the order of Java's heap."""

from __future__ import annotations

import random

import pytest

from pybroker.client.java.priority_queue import PriorityQueue


@pytest.mark.parametrize("seed", range(20))
def test_elements_are_polled_by_key(seed: int) -> None:
    dice = random.Random(seed)
    numbers = [dice.randrange(60) for _ in range(100)]
    queue: PriorityQueue[int] = PriorityQueue(lambda number: number)
    for number in numbers:
        queue.offer(number)
    assert [queue.poll() for _ in range(len(queue))] == sorted(numbers)
    assert queue.peek() is None


def test_equal_keys_have_the_order_of_javas_heap() -> None:
    # OpenJDK 17 polls in this order: the last element moves to the root, and equal children do not rise above it.
    queue: PriorityQueue[str] = PriorityQueue(lambda name: 1)
    for name in "abcd":
        queue.offer(name)
    assert "".join(queue.poll() for _ in range(4)) == "adcb"
