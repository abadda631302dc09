"""A cluster under load and faults keeps every promise: a short run in every suite, a long one by `make chaos`.

The seed of a run is printed; PYBROKER_CHAOS_SEED repeats its faults, PYBROKER_CHAOS_SECONDS says how long they last,
PYBROKER_CHAOS_BROKERS how many brokers there are.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.chaos.checker import summary
from tests.chaos.faults import schedule
from tests.chaos.network import Network
from tests.chaos.world import World, all_kinds, may_use_root

SECONDS = float(os.environ.get("PYBROKER_CHAOS_SECONDS", "120"))
SEED = int(os.environ.get("PYBROKER_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
BROKERS = int(os.environ.get("PYBROKER_CHAOS_BROKERS", "3"))

pytestmark = [pytest.mark.process, pytest.mark.timeout(SECONDS + 600)]


def test_nothing_that_was_promised_is_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()

    def note(text: str) -> None:
        with capsys.disabled():
            print(f"[{time.monotonic() - started:6.1f}] {text}", flush=True)

    has_rights = not may_use_root()
    world = World(
        tmp_path / "cluster",
        note,
        brokers=BROKERS,
        network=Network(BROKERS) if has_rights else None,
        small_disks=has_rights,
    )
    kinds = all_kinds(has_rights, has_rights)
    note(f"seed {SEED}, {BROKERS} brokers, {SECONDS:g} s")
    try:
        world.begin()
        for fault in schedule(SEED, world.brokers, kinds):
            if time.monotonic() - started > SECONDS:
                break
            world.disturb(fault)
        violations = world.finish()
        note(f"{len(world.history.sends)} records, {sum(one.acknowledged for one in world.senders)} acknowledged")
        assert not violations, f"seed {SEED}:\n{summary(violations)}"
    except BaseException:
        with capsys.disabled():
            print(world.logs(), flush=True)
        raise
    finally:
        world.end()
