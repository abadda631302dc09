"""The receiver that is built in: last values, sums of what comes as growth, and its bounds."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pybroker.telemetry import last_values
from pybroker.telemetry.client import Client, Push
from pybroker.telemetry.last_values import LastValues
from pybroker.telemetry.otlp import Point


def client(number: int) -> Client:
    return Client(number.to_bytes(16, "big"), f"c{number}", "n", "v", "127.0.0.1", 1, "User:ANONYMOUS")


def push(*points: Point, number: int = 1, is_last: bool = False) -> Push:
    return Push(client(number), repr([tuple(point) for point in points]).encode(), 1000, is_last)


def decode(payload: bytes) -> Iterator[Point]:
    yield from (Point(*fields) for fields in eval(payload))


def gauge(name: str, value: float, **labels: str) -> Point:
    return Point(name, tuple(sorted(labels.items())), value, False, False)


def growth(name: str, value: float) -> Point:
    return Point(name, (), value, True, True)


class Time:
    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def test_the_last_value_of_each_series_is_kept_and_growth_is_added_up(time: Time) -> None:
    values = LastValues(time, decode)
    values.receive(push(gauge("g", 1, topic="a"), gauge("g", 2, topic="b"), growth("s", 3)))
    time.now = 10
    values.receive(push(gauge("g", 5, topic="a"), growth("s", 4), is_last=True))
    (one,) = values.read()
    assert {(value.name, value.labels): value.value for value in one.values} == {
        ("g", (("topic", "a"),)): 5,
        ("g", (("topic", "b"),)): 2,
        ("s", ()): 7,
    }
    assert (one.client.client_id, one.pushes, one.is_last, one.age_ms) == ("c1", 2, True, 0)


def test_a_silent_client_goes(time: Time) -> None:
    values = LastValues(time, decode)
    values.receive(push(gauge("g", 1)))
    time.now = 59_999
    assert len(values.read()) == 1
    time.now = 60_000
    assert values.read() == ()


def test_nothing_grows_without_bound(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bound in (("MOST_CLIENTS", 3), ("MOST_VALUES", 5), ("MOST_OF_CLIENT", 2)):
        monkeypatch.setattr(last_values, name, bound)
    values = LastValues(time, decode)
    for number in range(1, 5):
        values.receive(push(gauge("a", 1), gauge("b", 1), gauge("c", 1), gauge("d" * 600, 1), number=number))
    found = values.read()
    assert [one.client.client_id for one in found] == ["c3", "c4"], "the values of three are too many"
    assert {(len(one.values), one.left_out) for one in found} == {(2, 2)}


def test_what_cannot_be_read_is_counted_and_said_once(time: Time, caplog: pytest.LogCaptureFixture) -> None:
    values = LastValues(time, None)
    with caplog.at_level(logging.WARNING, "pybroker.telemetry"):
        values.receive(push(gauge("g", 1)))
        values.receive(push(gauge("g", 1)))
    (one,) = values.read()
    assert (one.pushes, one.values) == (2, ())
    assert [record.message for record in caplog.records if "only pushes are counted" in record.message] == [
        (
            "Clients push metrics, but their values cannot be decoded: only pushes are counted. To decode them: "
            "python -m pip install 'opentelemetry-proto>=1.27'"
        )
    ]
