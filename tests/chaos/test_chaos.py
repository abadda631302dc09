"""A cluster under load and faults keeps every promise.

Two minutes of the same faults are a part of every run of all tests. `make chaos` takes longer, and other faults:
PYBROKER_CHAOS_SECONDS says how long they last, PYBROKER_CHAOS_SEED which they are (0 draws a seed, which is printed),
PYBROKER_CHAOS_BROKERS how many brokers there are. Faults of the network and of disks need rights: they are left out
where this process lacks them.
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
from tests.chaos.rights import mount_fault, network_fault
from tests.chaos.world import World, all_kinds

IS_REQUESTED = "PYBROKER_CHAOS_SECONDS" in os.environ
SECONDS = float(os.environ.get("PYBROKER_CHAOS_SECONDS", "120"))
SEED = int(os.environ.get("PYBROKER_CHAOS_SEED", "7")) or random.SystemRandom().randrange(1, 1 << 31)
BROKERS = int(os.environ.get("PYBROKER_CHAOS_BROKERS", "3"))

pytestmark = [pytest.mark.process, pytest.mark.timeout(SECONDS + 600)]


class Notes:
    """What has happened when: printed at once where somebody waits for it, and kept for the report of a failure."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.started = time.monotonic()
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        """Add a line."""
        self.lines.append(f"[{time.monotonic() - self.started:6.1f}] {text}")
        if IS_REQUESTED:
            with self._capsys.disabled():
                print(self.lines[-1], flush=True)


def acknowledged(world: World) -> int:
    """How many records the senders know to be written."""
    return sum(one.acknowledged for one in world.senders)


def test_nothing_that_was_promised_is_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = Notes(capsys)
    left_out = [fault for fault in (network_fault(), mount_fault()) if fault]
    network, disks = not network_fault(), not mount_fault()
    notes.note("; ".join([f"seed {SEED}, {BROKERS} brokers, {SECONDS:g} s", *left_out]))
    world = World(
        tmp_path / "cluster",
        notes.note,
        brokers=BROKERS,
        network=Network(BROKERS) if network else None,
        small_disks=disks,
    )
    try:
        world.begin()
        for fault in schedule(SEED, world.brokers, all_kinds(network, disks)):
            if time.monotonic() - notes.started > SECONDS and acknowledged(world) > 1000:
                break
            world.disturb(fault)
        violations = world.finish()
        notes.note(
            f"{len(world.history.sends)} records, {acknowledged(world)} acknowledged, {len(violations)} findings"
        )
        assert not violations, f"seed {SEED}:\n{summary(violations)}"
    except BaseException:
        with capsys.disabled():
            print("\n".join([*([] if IS_REQUESTED else notes.lines), world.logs()]), flush=True)
        raise
    finally:
        world.end()
