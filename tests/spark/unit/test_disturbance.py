"""Claims about `pybroker_spark.disturbance`."""

from __future__ import annotations

import pytest

from pybroker_spark.disturbance import Disturbance, log_disturbance


def test_of_several_the_longest_gap_and_the_sums_count() -> None:
    met = Disturbance.of_all([Disturbance(0.5, 1, 2), Disturbance(), Disturbance(0.1, 10, 20)])
    assert met == Disturbance(0.5, 11, 22)
    assert Disturbance.of_all([]) == Disturbance()


def test_a_wait_alone_is_no_disturbance(caplog: pytest.LogCaptureFixture) -> None:
    log_disturbance("the batch", [Disturbance(gap_s=0.2), Disturbance()])
    assert caplog.messages == []


def test_what_was_met_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log_disturbance("the batch", [Disturbance(0.25, 3, 1), Disturbance(0.1)])
    log_disturbance("query q batch 7", [Disturbance(0.0, 1000, 0)])
    one, other = caplog.messages
    met = "1 change of leaders, 3 records sent again, 0.25 s without an acknowledgement at most"
    assert one == f"the batch was written through {met}"
    met = "0 changes of leaders, 1,000 records sent again, 0.00 s without an acknowledgement at most"
    assert other == f"query q batch 7 was written through {met}"
