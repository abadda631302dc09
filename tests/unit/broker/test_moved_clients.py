from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.broker import moved_clients
from pybroker.broker.moved_clients import LONGEST_S, QUIET_S, MovedClients

STEP_S = 0.05


class Broker:
    """A broker whose counts change with every look, and a clock that each look moves on."""

    def __init__(self, refusals: Iterator[int], leads_for: int = 0) -> None:
        self._refusals, self._leads_for = refusals, leads_for
        self._count = 0
        self.looks = 0

    def refused(self) -> int:
        self._count += next(self._refusals, 0)
        self.looks += 1
        return self._count

    def leads(self) -> bool:
        return self.looks <= self._leads_for

    def now(self) -> float:
        return self.looks * STEP_S


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_clients, "_POLL_INTERVAL_S", 0)


async def _seconds(broker: Broker) -> tuple[bool, float]:
    clients = MovedClients(broker.leads, broker.refused, broker.now)
    begun = broker.now()
    return await clients.removed(), broker.now() - begun


async def test_a_broker_that_nobody_asks_stops_soon() -> None:
    removed, seconds = await _seconds(Broker(iter([7])))
    assert removed
    assert QUIET_S <= seconds <= QUIET_S + 2 * STEP_S


async def test_clients_that_come_back_are_answered_until_they_do_not() -> None:
    removed, seconds = await _seconds(Broker(iter([0, 3, 0, 0, 1, 0, 0, 2])))
    assert removed
    assert 7 * STEP_S + QUIET_S <= seconds < LONGEST_S


async def test_clients_that_find_no_other_leader_do_not_keep_a_broker_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    removed, seconds = await _seconds(Broker(iter([1] * 1000)))
    assert not removed
    assert LONGEST_S <= seconds <= LONGEST_S + 2 * STEP_S
    assert "clients still send requests for partitions that other brokers lead" in caplog.text


async def test_a_broker_that_does_not_know_yet_that_it_leads_no_more_goes_on() -> None:
    removed, seconds = await _seconds(Broker(iter([]), leads_for=10))
    assert removed
    assert seconds >= 9 * STEP_S + QUIET_S
