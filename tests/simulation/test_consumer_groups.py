"""Groups of KIP-848 and of both protocols under random schedules: one owner a partition, epochs rise, all settle."""

from __future__ import annotations

import pytest

from tests.simulation.consumer_schedule import Schedule
from tests.simulation.seeds import blocks, check_seeds


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", blocks(4_000), ids=str)
def test_members_of_the_consumer_protocol_settle_under_any_schedule(seeds: range) -> None:
    check_seeds(seeds, lambda seed: Schedule(seed, mixed=False).run())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", blocks(2_000), ids=str)
def test_members_of_both_protocols_settle_under_any_schedule(seeds: range) -> None:
    check_seeds(seeds, lambda seed: Schedule(seed, mixed=True).run())
