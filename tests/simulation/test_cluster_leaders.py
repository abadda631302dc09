"""Brokers that come, go and forget: no leader without what was acknowledged, whatever happens to them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from pybroker.controller.cluster import brokers, partition_changes
from pybroker.controller.cluster.availability import after_leaving
from pybroker.controller.cluster.elections import Elected
from pybroker.metadata.image import NO_LEADER, PartitionImage
from pybroker.metadata.replica_directories import UNASSIGNED_DIRECTORY
from tests.simulation.cluster_world import World
from tests.simulation.seeds import blocks, check_seeds


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", blocks(4_000), ids=str)
def test_no_leader_lacks_what_was_acknowledged(seeds: range) -> None:
    check_seeds(seeds, lambda seed: World(seed).run())


def never_lost(image: Any, broker: int, usable: Any, settings: Any, directories: Any = None, **_is_lost: bool) -> Any:
    """Leaves a broker eligible that restarted without what was only in memory."""
    return after_leaving(image, broker, usable, settings, directories)


def always_eligible(before: PartitionImage, after: PartitionImage, *_rules: Any) -> tuple[int, ...]:
    """Keeps who left an ISR that is large enough to acknowledge without them."""
    candidates = {*after.eligible_leader_replicas, *before.isr}.intersection(after.replicas)
    return tuple(sorted(candidates.difference(after.isr)))


def anybody(partition: PartitionImage, usable: Any, *_how: Any) -> Elected:
    """Elects the first replica that is there, as if it were in sync."""
    return Elected(next((one for one in partition.replicas if usable(one, UNASSIGNED_DIRECTORY)), NO_LEADER))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("module", "name", "bug"),
    [
        (brokers, "after_leaving", never_lost),
        (partition_changes, "_eligible", always_eligible),
        (partition_changes, "elect", anybody),
    ],
    ids=["a lost log is eligible", "eligible without a minimum", "out of sync"],
)
def test_a_planted_bug_is_found(module: ModuleType, name: str, bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, bug)
    with pytest.raises(AssertionError, match="seed "):
        check_seeds(range(1_000), lambda seed: World(seed).run())
