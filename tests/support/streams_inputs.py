"""Seeded random records for topologies: late and equal timestamps, tombstones, keys of None, headers."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.support.streams_steps import Step, encoded

KEYS = ("a", "b", "c", "d", "aa", "ab", "")
VALUES = ("a", "b", "bb", "c", "cat", "dog", "abba", "beetle", "aardvark", "")
START_MS = 1000


def random_inputs(dice: random.Random, topics: Sequence[str], count: int = 40) -> list[Step]:
    """Return records of the topics, and some advances of the wall clock.

    Times advance by about 20 ms a record. A quarter of the records is late, by up to 300 ms, and every eighth has the
    timestamp of the record before it.
    """
    inputs: list[Step] = []
    now = last = START_MS
    for _ in range(count):
        now += dice.choice((0, 1, 5, 10, 20, 20, 40, 60, 150))
        chance = dice.random()
        last = max(0, now - dice.randrange(300)) if chance < 0.25 else last if chance < 0.375 else now
        headers = [[f"h{dice.randrange(3)}", dice.choice((None, encoded(b"x"), encoded(b"")))]]
        inputs.append(
            {
                "topic": dice.choice(topics),
                "key": None if dice.random() < 0.05 else encoded(dice.choice(KEYS[: dice.randrange(3, 8)]).encode()),
                "value": None if dice.random() < 0.15 else encoded(dice.choice(VALUES).encode()),
                "timestamp": last,
                "headers": headers * dice.choice((0, 0, 1, 2)),
            }
        )
        if dice.random() < 0.1:
            inputs.append({"advance_ms": dice.choice((1, 50, 100, 250))})
    # The end of a run closes the windows of all records before it.
    inputs += [
        {"topic": topic, "key": encoded(b"z"), "value": encoded(b"last"), "timestamp": now + 100_000, "headers": []}
        for topic in topics
    ]
    return inputs


def topics_of(topology: Sequence[Step]) -> list[str]:
    """Return the topics that a topology reads. A pattern stands for the one topic with the name of the pattern."""
    topics: list[str] = []
    for step in topology:
        match step["op"]:
            case "stream" | "api_source":
                topics += step["topics"] if "topics" in step else [step["pattern"].replace(".*", "x")]
            case "table" | "global_table" | "global_store":
                topics.append(step["topic"])
    return sorted(set(topics))
