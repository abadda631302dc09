from __future__ import annotations

import asyncio

from pybroker.broker.directory_reports import DirectoryReports


async def turn() -> None:
    """Let everything run that is ready."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_soon(passed.set)
    await passed.wait()


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
    await asyncio.wait_for(all_sent.wait(), 5)
    assert sent == [1, 2, 3]


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
    await asyncio.wait_for(begun.wait(), 5)
    stopping = asyncio.ensure_future(reports.stop())
    await turn()
    goes_on.set()
    await stopping
    assert sent == ["first"]
