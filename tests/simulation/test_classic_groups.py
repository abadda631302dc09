"""One coordinator, up to 50 members, and everything that may happen to them: thousands of seeds."""

from __future__ import annotations

import pytest

from tests.simulation.classic_world import World
from tests.simulation.seeds import blocks, check_seeds


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", blocks(4_000), ids=str)
def test_groups_come_to_rest_and_lose_nothing_whatever_happens_to_their_members(seeds: range) -> None:
    check_seeds(seeds, lambda seed: World(seed).run())
