from __future__ import annotations

import asyncio

from pybroker.replica.directory_reports import DirectoryReports


async def turn() -> None:
    """Let everything run that is ready."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_soon(passed.set)
    await passed.wait()


async def test_reports_are_told_in_order_and_none_before_the_registration() -> None:
    reports, all_told = DirectoryReports(), asyncio.Event()
    told: list[int] = []

    def report(number: int) -> None:
        async def tell() -> None:
            await turn()
            told.append(number)
            if number == 3:
                all_told.set()

        reports.add(tell)

    report(1)
    report(2)
    await turn()
    assert told == []
    reports.registered()
    report(3)
    await asyncio.wait_for(all_told.wait(), 5)
    assert told == [1, 2, 3]


async def test_a_stop_waits_for_the_report_under_way_and_forgets_the_others() -> None:
    reports, begun, goes_on = DirectoryReports(), asyncio.Event(), asyncio.Event()
    told: list[str] = []

    async def first() -> None:
        begun.set()
        await goes_on.wait()
        told.append("first")

    async def second() -> None:
        told.append("second")

    reports.add(first)
    reports.add(second)
    reports.registered()
    await asyncio.wait_for(begun.wait(), 5)
    stopping = asyncio.ensure_future(reports.stop())
    await turn()
    goes_on.set()
    await stopping
    assert told == ["first"]
