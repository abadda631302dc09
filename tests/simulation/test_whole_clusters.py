"""Whole clusters, each from a seed: nothing acknowledged is lost, and peace mends everything, whatever befalls them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.simulation.seeds import blocks, check_seeds, few_collections, note_ended
from tests.simulation.shrinking import shrink
from tests.simulation.simulated_broker import NO_FAULTS, Faults
from tests.simulation.whole_invariants import BrokenError
from tests.simulation.whole_world import TRANSACTIONS_EACH, Plan, World, build_plan
from tests.support import repository

OF_TRANSACTIONS = {
    "marker before prepare": Faults(marks_before_prepared=True),
    "no fencing of producers": Faults(gives_epochs_again=True),
    "epoch reuse": Faults(keeps_epochs=True),
    "no verification": Faults(verifies_nothing=True),
    "no marker for offsets": Faults(forgets_offsets=True),
}
PLANTED = {
    "truncate by watermark": Faults(truncates_by_watermark=True),
    "no fencing": Faults(fences_nobody=True),
    "forgotten epoch": Faults(forgets_epochs=True),
    "acknowledge before the high watermark": Faults(acknowledges_early=True),
    "vote not persisted": Faults(forgets_votes=True),
    **OF_TRANSACTIONS,
}
LOOKED_AT_FIRST = {
    "truncate by watermark": 16,
    "no fencing": 553,
    "forgotten epoch": 55,
    "vote not persisted": 18,
    "marker before prepare": 90,
}
"""Seeds that have found what few seeds find, or have few faults: with them a search takes seconds."""


@pytest.fixture(autouse=True)
def _small_garbage() -> Iterator[None]:
    with few_collections():
        yield


def play(seed: int, faults: Faults = NO_FAULTS) -> None:
    """Play a seed; raises what is broken, with the fewest faults that break it."""
    plan = build_plan(seed)
    try:
        World(plan, faults).run()
    except Exception as error:
        shrunk = shrink(plan, lambda fewer: breaks(fewer, faults))
        raise AssertionError(f"{error}\nalso with no more than {shrunk}") from error


def breaks(plan: Plan, faults: Faults) -> bool:
    """Whether a run ends badly."""
    try:
        World(plan, faults).run()
    except Exception:  # noqa: BLE001 - however it ends
        return True
    finally:
        note_ended()
    return False


def test_worlds_that_have_ended_keep_few_files_open() -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before, most = count(), 0
    for plan in map(build_plan, range(30)):
        breaks(plan, NO_FAULTS)
        most = max(most, count() - before)
    assert most < 300, "a world keeps some twenty: a collection comes after each ten"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", blocks(400), ids=str)
def test_nothing_acknowledged_is_lost_and_peace_mends_everything(seeds: range) -> None:
    check_seeds(seeds, play)


@pytest.mark.parametrize("seed", [3, 8])
def test_a_seed_is_the_same_run_every_time(seed: int) -> None:
    first, second = World(build_plan(seed)), World(build_plan(seed))
    assert first.run() == second.run()
    assert first.lines == second.lines


def test_a_seed_is_the_same_run_in_every_process() -> None:
    """Whatever the order is in which a process has the items of its sets."""
    program = f"from tests.simulation.whole_world import *; print(World(build_plan({2 * TRANSACTIONS_EACH})).run())"
    played = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": order},
            cwd=repository.ROOT,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        for order in ("0", "3")
    }
    assert len(played) == 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found_and_shrunk(name: str) -> None:
    faults = PLANTED[name]
    every = range(0, 1_000, TRANSACTIONS_EACH if name in OF_TRANSACTIONS else 1)
    seeds = chain([LOOKED_AT_FIRST[name]] if name in LOOKED_AT_FIRST else [], every)
    broken = next((plan for plan in map(build_plan, seeds) if breaks(plan, faults)), None)
    assert broken is not None, "no seed finds it"
    assert not breaks(broken, NO_FAULTS), "it ends badly without the bug as well"
    shrunk = shrink(broken, lambda fewer: breaks(fewer, faults))
    assert len(shrunk.faults) <= len(broken.faults)
    with pytest.raises(Exception) as first:
        World(shrunk, faults).run()
    with pytest.raises(Exception) as second:
        World(shrunk, faults).run()
    assert (type(first.value), str(first.value)) == (type(second.value), str(second.value))


def test_a_run_does_something() -> None:
    world = World(build_plan(2 * TRANSACTIONS_EACH))
    world.run()
    assert world.clients.produced > 20
    assert world.clients.consumed > 20
    assert world.clients.commits > 2
    audit = world.clients.transactional.audit
    assert min(audit.committed, audit.aborted + audit.fenced, audit.read, audit.offsets_read) > 0
    assert world.clients.transactional.read_of_followers > 0
    assert issubclass(BrokenError, AssertionError)
