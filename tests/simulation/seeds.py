"""Which seeds a simulation plays, and how its faults are reported.

Owns the way from the environment to blocks of seeds, one a test, and from a world that ended badly to the line that
plays it again.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SEEDS = os.environ.get("PYBROKER_SIMULATED_SEEDS")
_FIRST = int(os.environ.get("PYBROKER_FIRST_SEED", "0"))

_WORLDS_KEPT = 10
"""A world that has ended keeps some twenty files open until it is collected."""


def blocks(seeds: int, count: int = 20) -> list[range]:
    """Deal seeds out; `PYBROKER_SIMULATED_SEEDS` and `PYBROKER_FIRST_SEED` say which instead."""
    last = _FIRST + (seeds if _SEEDS is None else int(_SEEDS))
    return [range(first, last, count) for first in range(_FIRST, min(_FIRST + count, last))]


def check_seeds(seeds: range, world: Callable[[int], None]) -> None:
    """Play each seed; raises when some end badly, with what it takes to play the first of them alone."""
    faults = {}
    with _few_collections():
        for played, seed in enumerate(seeds, start=1):
            try:
                world(seed)
            except Exception as error:  # noqa: BLE001 - whatever a world ends with is a fault of its seed
                faults[seed] = f"seed {seed}: {type(error).__name__}: {error}"
            if played % _WORLDS_KEPT == 0:
                gc.collect()
    assert not faults, "\n".join(
        [*faults.values(), f"again: PYBROKER_FIRST_SEED={min(faults)} PYBROKER_SIMULATED_SEEDS=1"]
    )


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for garbage after each few worlds, not many times in each: a tenth of the time goes there otherwise.

    What other tests of the process have made is not looked at.
    """
    threshold = gc.get_threshold()
    gc.set_threshold(200_000, *threshold[1:])
    gc.freeze()
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.collect()
        gc.unfreeze()
