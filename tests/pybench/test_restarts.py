"""Loads that start brokers of their own: what is filled is there after each restart, what is made has leaders."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.restarts import Restarts
from pybench.topic_loads import measure_creations, measure_metadata


@pytest.mark.parametrize("killed", [False, True])
def test_a_broker_that_was_filled_once_is_restarted_in_every_turn(killed: bool) -> None:
    restarts = Restarts({"partitions": 3, "killed": killed}, 30)
    try:
        for _ in range(2):
            command, figures = restarts.turn("pybroker")
            assert command == "pybroker start"
            assert 0 < figures["start_s"] <= figures["led_s"]
            assert figures["stop_s"] > 0
    finally:
        restarts.close()


def test_creations_are_timed_until_every_partition_has_a_leader(tmp_path: Path) -> None:
    _, figures = measure_creations("pybroker", 3, tmp_path)
    assert figures["cold_ms"] > 0
    assert figures["warm_ms"] > 0


def test_metadata_is_timed_with_every_topic_in_it(tmp_path: Path) -> None:
    _, figures = measure_metadata("pybroker", 5, tmp_path)
    assert figures["p50_ms"] <= figures["p99_ms"]
    # Each topic has its name, its id and a partition.
    assert figures["bytes"] / figures["records"] > 5 * (len("topic-0000") + 16)
