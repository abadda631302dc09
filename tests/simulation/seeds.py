"""Which seeds a simulation plays, and how its faults are reported.

Owns the way from the environment to blocks of seeds, one a test, and from a world that ended badly to the line that
plays it again.
"""

from __future__ import annotations

import gc
import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

_SEEDS = os.environ.get("PYBROKER_SIMULATED_SEEDS")
_FIRST = int(os.environ.get("PYBROKER_FIRST_SEED", "0"))

_WORLDS_KEPT = 10
"""A world that has ended keeps some twenty files open until it is collected."""
_ENDED = itertools.count(1)


def blocks(seeds: int, count: int = 20) -> list[range]:
    """Deal seeds out; `PYBROKER_SIMULATED_SEEDS` and `PYBROKER_FIRST_SEED` say which instead."""
    last = _FIRST + (seeds if _SEEDS is None else int(_SEEDS))
    return [range(first, last, count) for first in range(_FIRST, min(_FIRST + count, last))]


def check_seeds(seeds: Iterable[int], world: Callable[[int], None]) -> None:
    """Play each seed; raises when some end badly, with what it takes to play the first of them alone."""
    faults = {}
    with few_collections():
        for seed in seeds:
            try:
                world(seed)
            except Exception as error:  # noqa: BLE001 - whatever a world ends with is a fault of its seed
                faults[seed] = f"seed {seed}: {type(error).__name__}: {error}"
            note_ended()
    assert not faults, "\n".join(
        [*faults.values(), f"again: PYBROKER_FIRST_SEED={min(faults)} PYBROKER_SIMULATED_SEEDS=1"]
    )


def note_ended() -> None:
    """Collect what the last worlds held, after each few that have ended.

    A coroutine that is ended by its collection lives for the time of it, and what it held with it: the second
    collection takes that.
    """
    if next(_ENDED) % _WORLDS_KEPT == 0:
        gc.collect()
        gc.collect()


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage after each few worlds, not many times in each: a tenth of the time goes there otherwise.

    What other tests left to collect is collected first. What was collected of tests is frozen (`tests/conftest.py`) and
    stays so: each look would go through millions of objects.
    """
    threshold = gc.get_threshold()
    gc.set_threshold(200_000, *threshold[1:])
    with warnings.catch_warnings():
        # What others left open is not this test's to answer for.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.collect()
