from __future__ import annotations

import asyncio

import pytest

from pybroker.broker import directory_reports
from pybroker.broker.directory_reports import DirectoryReports


async def turn() -> None:
    """Let everything run that is ready."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_soon(passed.set)
    await passed.wait()


async def never_arrives(_number: int) -> bool:
    return False


async def test_reports_are_sent_in_order_and_none_before_the_registration() -> None:
    reports, all_sent = DirectoryReports(), asyncio.Event()
    sent: list[int] = []

    def report(number: int) -> None:
        async def send() -> None:
            await turn()
            sent.append(number)
            if number == 3:
                all_sent.set()

        reports.add(send)

    report(1)
    report(2)
    await turn()
    assert sent == []
    reports.registered()
    report(3)
    await asyncio.wait_for(all_sent.wait(), 60)
    assert sent == [1, 2, 3]


async def test_a_report_that_has_to_arrive_is_sent_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_reports, "_AGAIN_S", 0)
    reports, arrived = DirectoryReports(), asyncio.Event()
    sent: list[int] = []

    async def report(number: int) -> bool:
        sent.append(number)
        if number == 3:
            arrived.set()
        return number == 3

    reports.insist(report, 60, lambda: pytest.fail("it arrived in time"))
    reports.registered()
    await asyncio.wait_for(arrived.wait(), 60)
    await turn()
    assert (sent, reports._later) == ([1, 2, 3], set())


async def test_a_report_that_never_arrives_is_given_up_once() -> None:
    reports, given_up = DirectoryReports(), asyncio.Event()
    reports.insist(never_arrives, 0.01, given_up.set)
    reports.registered()
    await asyncio.wait_for(given_up.wait(), 60)
    await reports.stop()
    assert reports._later == set()


async def test_nothing_is_given_up_after_a_stop() -> None:
    reports = DirectoryReports()
    reports.insist(never_arrives, 0, lambda: pytest.fail("it has stopped"))
    await reports.stop()
    await turn()
    assert reports._later == set()


async def test_a_stop_waits_for_the_report_under_way_and_forgets_the_others() -> None:
    reports, begun, goes_on = DirectoryReports(), asyncio.Event(), asyncio.Event()
    sent: list[str] = []

    async def first() -> None:
        begun.set()
        await goes_on.wait()
        sent.append("first")

    async def second() -> None:
        sent.append("second")

    reports.add(first)
    reports.add(second)
    reports.registered()
    await asyncio.wait_for(begun.wait(), 60)
    stopping = asyncio.ensure_future(reports.stop())
    await turn()
    goes_on.set()
    await stopping
    assert sent == ["first"]
