from __future__ import annotations

from pybroker.streams.application.measured import Measured


def test_average_and_maximum_are_those_of_all_values() -> None:
    measured = Measured()
    assert measured.metrics("poll-records") == {"poll-records-avg": 0, "poll-records-max": 0}
    for value in (1, 2, 6):
        measured.record(value)
    assert measured.metrics("poll-records") == {"poll-records-avg": 3, "poll-records-max": 6}
