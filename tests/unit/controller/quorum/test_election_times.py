from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.controller.quorum.election_times import election_pause_s, tick_seconds
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.quorum.voter import ELECTION_TICKS


@pytest.mark.parametrize(("knows_leader", "expected_ms"), [(True, 3000), (False, 700)])
def test_without_a_leader_the_election_timeout_counts_and_with_one_half_of_the_fetch_timeout(
    tmp_path: Path, knows_leader: bool, expected_ms: float
) -> None:
    settings = QuorumSettings(tmp_path, "c", 1, (1, 2, 3), election_timeout_ms=700, fetch_timeout_ms=6000)
    assert tick_seconds(settings, knows_leader=knows_leader) * ELECTION_TICKS * 1000 == pytest.approx(expected_ms)


def test_a_timeout_of_nothing_does_not_take_the_whole_processor(tmp_path: Path) -> None:
    settings = QuorumSettings(tmp_path, "c", 1, (1,), election_timeout_ms=0, fetch_timeout_ms=0)
    assert tick_seconds(settings, knows_leader=True) > 0 < tick_seconds(settings, knows_leader=False)


def test_pauses_between_elections_grow_up_to_the_longest() -> None:
    close, last = [election_pause_s(tries, 60_000) for tries in (1, 3)], election_pause_s(8, 60_000)
    assert all(0.1 <= pause <= 0.2 for pause in close)
    assert 3.2 <= last <= 6.4
    assert [election_pause_s(8, 1000), election_pause_s(1, 50), election_pause_s(1, 0)] == [1, 0.05, 0]
