"""One coordinator, up to 50 members, and everything that may happen to them: thousands of seeds."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.simulation.classic_world import World

SEEDS = int(os.environ.get("PYBROKER_SIMULATED_SEEDS", "10000"))
FIRST = int(os.environ.get("PYBROKER_FIRST_SEED", "0"))
AT_ONCE = 100


def play(first: int) -> list[str]:
    """Play some seeds; what went wrong, with the seed to play again."""
    faults = []
    for seed in range(first, first + AT_ONCE):
        try:
            World(seed).run()
        except Exception as error:  # noqa: BLE001 - whatever a world ends with is a fault of its seed
            faults.append(f"seed {seed}: {type(error).__name__}: {error}")
    return faults


@pytest.mark.timeout(600)
def test_groups_come_to_rest_and_lose_nothing_whatever_happens_to_their_members() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for some in pool.map(play, range(FIRST, FIRST + SEEDS, AT_ONCE)) for fault in some]
    assert faults == []
