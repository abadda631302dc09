"""The runner: batches, parked replies, timers, and nothing to undo."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pybroker.machine.machine import Delayed, DelayedReply, Outcome, Timer
from pybroker.machine.reply import Reply
from pybroker.machine.runner import RAISED_MS, ClosedError, Runner, SupersededError, UncommittedError, UnwritableError


class Tally:
    """A machine: adds numbers, refuses what would exceed its limit, and can be asked for timers."""

    def __init__(self, total: int = 0) -> None:
        self.total = total

    def draft(self) -> Tally:
        return Tally(self.total)

    def keep(self) -> Tally:
        return self

    def drop(self) -> None:
        pass

    def handle(self, event: Any, now: int) -> Outcome[int, Any]:
        if event == "total":
            return Outcome((), self.total)
        if isinstance(event, Timer):
            return Outcome((), "set", (event,))
        if self.total + event > 100:
            raise ValueError(f"{self.total} + {event} is too much")
        return Outcome((event,), self.total + event)

    def apply(self, record: int) -> None:
        self.total += record


class Disk:
    """An append that can be held up and can fail."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self.failure: Exception | None = None

    async def append(self, records: Sequence[int]) -> None:
        self.batches.append(list(records))
        self.begun.set()
        await self.open.wait()
        if self.failure is not None:
            raise self.failure


class Clock:
    """A clock that is set by hand, and the one alarm that the runner sets on it."""

    def __init__(self) -> None:
        self.now_ms = 1000
        self.alarms: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> int:
        return self.now_ms

    def call_later(self, delay: float, ring: Callable[[], None]) -> Any:
        timeout = (self.now_ms / 1000 + delay, ring)
        self.alarms.append(timeout)

        class Handle:
            def cancel(handle) -> None:  # noqa: N805 - `self` is the clock
                if timeout in self.alarms:
                    self.alarms.remove(timeout)

        return Handle()

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        for timeout in [timeout for timeout in self.alarms if timeout[0] * 1000 <= self.now_ms]:
            self.alarms.remove(timeout)
            timeout[1]()


def make_runner(disk: Disk, clock: Clock | None = None, max_records: int = 1000) -> Runner[Any, int]:
    clock = clock or Clock()
    return Runner(Tally(), disk.append, now=clock.now, max_records=max_records, call_later=clock.call_later)


async def test_what_one_turn_submits_is_one_append_and_each_event_sees_those_before_it() -> None:
    disk = Disk()
    runner = make_runner(disk)
    assert await asyncio.gather(*[runner.submit(number) for number in (1, 2, 3)]) == [1, 3, 6]
    assert disk.batches == [[1, 2, 3]]


async def test_a_reply_waits_for_the_commit_and_so_does_the_state() -> None:
    disk = Disk()
    disk.open.clear()
    runner = make_runner(disk)
    reply = runner.submit(5)
    await disk.begun.wait()
    assert not reply.done()
    assert runner.machine.total == 0  # type: ignore[attr-defined]
    disk.open.set()
    assert await reply == 5
    assert runner.machine.total == 5  # type: ignore[attr-defined]


async def test_what_comes_during_an_append_is_the_next_batch() -> None:
    disk = Disk()
    disk.open.clear()
    runner = make_runner(disk)
    first = runner.submit(1)
    await disk.begun.wait()
    others = [runner.submit(2), runner.submit(3)]
    disk.open.set()
    assert await asyncio.gather(first, *others) == [1, 3, 6]
    assert disk.batches == [[1], [2, 3]]


async def test_a_batch_is_closed_when_it_is_full() -> None:
    disk = Disk()
    runner = make_runner(disk, max_records=2)
    await asyncio.gather(*[runner.submit(1) for _ in range(5)])
    assert [len(batch) for batch in disk.batches] == [2, 2, 1]


async def test_an_event_that_goes_alone_shares_no_append() -> None:
    class Solitary(Tally):
        alone = frozenset({bool})

        def draft(self) -> Solitary:
            return Solitary(self.total)

    disk = Disk()
    runner: Runner[Any, int] = Runner(Solitary(), disk.append, now=lambda: 0, max_records=1000)
    replies = [runner.submit(event) for event in (1, 2, True, True, 3, "total")]
    assert await asyncio.gather(*replies) == [1, 3, 4, 5, 8, 8]
    assert disk.batches == [[1, 2], [True], [True], [3]]
    await runner.close()


async def test_a_refused_event_fails_alone() -> None:
    disk = Disk()
    runner = make_runner(disk)
    replies = [runner.submit(60), runner.submit(70), runner.submit(40)]
    results = await asyncio.gather(*replies, return_exceptions=True)
    assert results[0] == 60
    assert str(results[1]) == "60 + 70 is too much"
    assert results[2] == 100
    assert disk.batches == [[60, 40]]


async def test_a_failed_append_fails_its_batch_and_leaves_the_state_as_it_was() -> None:
    disk = Disk()
    runner = make_runner(disk)
    await runner.submit(1)
    disk.failure = OSError("no space")
    results = await asyncio.gather(runner.submit(2), runner.submit("total"), return_exceptions=True)
    assert [str(result) for result in results] == ["no space", "no space"]
    assert runner.machine.total == 1  # type: ignore[attr-defined]
    disk.failure = None
    assert await runner.submit(3) == 4


async def test_an_event_that_decides_nothing_appends_nothing() -> None:
    disk = Disk()
    runner = make_runner(disk)
    assert await runner.submit("total") == 0
    assert disk.batches == []


async def test_an_event_whose_caller_has_gone_is_not_handled() -> None:
    disk = Disk()
    runner = make_runner(disk)
    removed, stays = runner.submit(1), runner.submit(2)
    removed.cancel()
    assert await stays == 2
    assert disk.batches == [[2]]


async def test_timers_fire_in_the_order_of_their_deadlines() -> None:
    disk, clock = Disk(), Clock()
    runner = make_runner(disk, clock)
    await runner.submit(Timer("late", 1500, 30))
    await runner.submit(Timer("early", 1200, 20))
    assert runner.has_timer("early")
    clock.advance(499)
    assert await runner.submit("total") == 20
    assert not runner.has_timer("early")
    clock.advance(1)
    assert await runner.submit("total") == 50


async def test_a_timer_is_replaced_and_cancelled_by_its_key() -> None:
    disk, clock = Disk(), Clock()
    runner = make_runner(disk, clock)
    await runner.submit(Timer("one", 1100, 10))
    await runner.submit(Timer("one", 1300, 11))
    clock.advance(200)
    assert await runner.submit("total") == 0
    await runner.submit(Timer("one", None))
    clock.advance(1000)
    assert await runner.submit("total") == 0
    assert clock.alarms == []


async def test_a_timer_whose_event_fails_is_logged_and_comes_again(caplog: pytest.LogCaptureFixture) -> None:
    disk, clock = Disk(), Clock()
    runner = make_runner(disk, clock)
    await runner.submit(Timer("too much", 1100, 1000))
    for times in (1, 2):
        clock.advance(RAISED_MS + 200)
        await runner.submit("total")
        assert caplog.text.count("Failed to handle a timer event") == times
    assert runner.has_timer("too much")
    await runner.submit(Timer("too much", None))
    assert not runner.has_timer("too much")


async def test_closing_finishes_what_waits_and_takes_no_more() -> None:
    disk, clock = Disk(), Clock()
    runner = make_runner(disk, clock)
    await runner.submit(Timer("one", 1100, 10))
    reply = runner.submit(1)
    await runner.close()
    assert reply.result() == 1
    assert clock.alarms == []
    with pytest.raises(ClosedError):
        await runner.submit(2)


class Rendezvous(Tally):
    """Parks `("wait", key)` until `("meet", key)` answers it."""

    def draft(self) -> Rendezvous:
        return Rendezvous(self.total)

    def handle(self, event: Any, now: int) -> Outcome[int, Any]:
        match event:
            case ("wait", key):
                return Outcome((), Delayed(key))
            case ("meet", key):
                return Outcome((1,), "met", (), (DelayedReply(key, "answered"), DelayedReply("nobody", "unheard")))
            case ("both", key):
                return Outcome((1,), Delayed(key), (), (DelayedReply(key, "at once"),))
        return super().handle(event, now)


def make_rendezvous(disk: Disk) -> Runner[Any, int]:
    clock = Clock()
    return Runner(Rendezvous(), disk.append, now=clock.now, max_records=1000, call_later=clock.call_later)


async def test_a_parked_reply_is_set_by_a_later_event_after_its_commit() -> None:
    disk = Disk()
    runner = make_rendezvous(disk)
    waits = runner.submit(("wait", "a"))
    await runner.submit("total")
    assert not waits.done()
    assert runner.delayed == 1
    disk.open.clear()
    meets = runner.submit(("meet", "a"))
    await disk.begun.wait()
    assert not waits.done()
    disk.open.set()
    assert await asyncio.gather(waits, meets) == ["answered", "met"]
    assert runner.delayed == 0


async def test_an_event_may_answer_what_it_parks() -> None:
    assert await make_rendezvous(Disk()).submit(("both", "a")) == "at once"


async def test_who_parks_under_a_taken_key_takes_the_place() -> None:
    runner = make_rendezvous(Disk())
    first, second = runner.submit(("wait", "a")), runner.submit(("wait", "a"))
    with pytest.raises(SupersededError):
        await first
    await runner.submit(("meet", "a"))
    assert await second == "answered"


async def test_closing_fails_what_is_parked() -> None:
    runner = make_rendezvous(Disk())
    waits = runner.submit(("wait", "a"))
    await runner.close()
    with pytest.raises(ClosedError):
        await waits


async def test_an_append_that_commits_at_once_answers_within_the_step() -> None:
    clock = Clock()
    appended: list[list[int]] = []
    responses: list[tuple[Any, Exception | None]] = []

    def append(records: Sequence[int]) -> None:
        appended.append(list(records))

    runner = Runner(Tally(), append, now=clock.now, max_records=1000, call_later=clock.call_later)
    for number in (1, 2, 101):
        runner.post(number, lambda value, error: responses.append((value, error)))
    runner.step()
    assert appended == [[1, 2]]
    assert [value for value, error in responses if error is None] == [1, 3]
    assert [str(error) for _, error in responses if error is not None] == ["3 + 101 is too much"]
    assert runner.machine.total == 3  # type: ignore[attr-defined]


async def test_what_is_queued_waits_for_a_step() -> None:
    clock = Clock()
    responses: list[Any] = []
    runner = Runner(Tally(), lambda _: None, now=clock.now, max_records=1000, call_later=clock.call_later)
    runner.queue(1, lambda value, _: responses.append(value))
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned
    assert responses == []
    runner.step()
    assert responses == [1]
    await runner.close()
    runner.queue(1, lambda _, error: responses.append(type(error)))
    assert responses == [1, ClosedError]


async def test_an_append_whose_commit_completes_later_answers_within_that() -> None:
    clock, commits = Clock(), [Reply(), Reply()]
    waiting, responses = iter(commits), []
    runner = Runner(
        Tally(), lambda _records: next(waiting), now=clock.now, max_records=1000, call_later=clock.call_later
    )
    for number in (1, 2):
        runner.post(number, lambda value, error: responses.append((value, error)))
    runner.step()
    runner.post(3, lambda value, error: responses.append((value, error)))
    runner.step()
    assert responses == []
    commits[0](None, None)
    assert responses == [(1, None), (3, None)]
    runner.step()
    commits[1](None, OSError("no disk"))
    assert [str(error) for _, error in responses[2:]] == ["no disk"]
    assert runner.machine.total == 3  # type: ignore[attr-defined]


async def test_a_caller_that_waits_too_long_for_a_commit_gets_an_error_and_the_commit_holds() -> None:
    disk = Disk()
    disk.open.clear()
    clock = Clock()
    runner: Runner[Any, int] = Runner(Tally(), disk.append, now=clock.now, max_records=1000, timeout_ms=1)
    in_work = runner.submit(1)
    await disk.begun.wait()
    behind = runner.submit(2)
    for reply in (in_work, behind):
        with pytest.raises(UncommittedError, match="not committed within 1 ms"):
            await reply
    disk.open.set()
    assert await runner.submit("total") == 1
    await runner.close()


@pytest.mark.parametrize("events", [1, 2, 3, 7, 64])
async def test_an_event_whose_records_are_not_taken_fails_alone(events: int) -> None:
    async def append(records: Sequence[int]) -> None:
        if 13 in records:
            raise UnwritableError("13 is too large")

    for poisoned in range(events):
        clock = Clock()
        runner = Runner(Tally(), append, now=clock.now, max_records=1000, call_later=clock.call_later)
        requested = [runner.submit(13 if event == poisoned else 1) for event in range(events)]
        responses = await asyncio.gather(*requested, return_exceptions=True)
        assert isinstance(responses.pop(poisoned), UnwritableError)
        assert responses == list(range(1, events))


class Otherwise(Outcome[Any, Any], frozen=True, kw_only=True):
    otherwise: Callable[[], Outcome[Any, Any]]


class Forgiving(Tally):
    """Counts 1 in place of a number that the log does not take, and answers who waits."""

    def draft(self) -> Forgiving:
        return Forgiving(self.total)

    def handle(self, event: Any, now: int) -> Outcome[int, Any]:
        if event == "wait":
            return Outcome((), Delayed("p"))
        outcome = super().handle(event, now)
        if event != 13:
            return outcome
        instead = Outcome(
            (1,), f"1 and not 13, after {self.total}", (Timer("t", now + 5, 2),), (DelayedReply("p", "13?"),)
        )
        return Otherwise(outcome.records, outcome.reply, outcome.timers, outcome.responses, otherwise=lambda: instead)


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize("poisoned", [0, 1, 4])
async def test_an_event_whose_records_are_not_taken_is_decided_otherwise(poisoned: int, is_later: bool) -> None:
    taken: list[int] = []

    def append(records: Sequence[int]) -> Any:
        if 13 in records and not is_later:
            raise UnwritableError("13 is too large")
        reply = Reply()
        if 13 in records:
            asyncio.get_running_loop().call_soon(reply, None, UnwritableError("13 is too large"))
            return reply
        taken.extend(records)
        return None

    clock = Clock()
    runner = Runner(Forgiving(), append, now=clock.now, max_records=1000, call_later=clock.call_later)
    waiting = runner.submit("wait")
    requested = [runner.submit(13 if event == poisoned else 1) for event in range(5)]
    responses = await asyncio.gather(*requested)
    assert responses.pop(poisoned) == f"1 and not 13, after {poisoned}"
    assert responses == [number for number in range(1, 6) if number != poisoned + 1]
    assert await waiting == "13?"
    assert taken == [1] * 5
    clock.advance(5)
    assert await runner.submit("total") == 7


async def test_an_event_fails_when_what_is_decided_otherwise_is_not_taken_either() -> None:
    def append(_records: Sequence[int]) -> None:
        raise UnwritableError("nothing fits")

    clock = Clock()
    runner = Runner(Forgiving(), append, now=clock.now, max_records=1000, call_later=clock.call_later)
    with pytest.raises(UnwritableError):
        await runner.submit(13)
    assert await runner.submit("total") == 0


async def test_a_failed_append_drops_the_draft() -> None:
    dropped: list[int] = []

    class Watched(Tally):
        def draft(self) -> Watched:
            return Watched(self.total)

        def drop(self) -> None:
            dropped.append(self.total)

    clock = Clock()

    def append(_records: Sequence[int]) -> None:
        raise OSError("no space")

    runner = Runner(Watched(), append, now=clock.now, max_records=1000, call_later=clock.call_later)
    with pytest.raises(OSError, match="no space"):
        await runner.submit(5)
    assert dropped == [5]
    assert runner.machine.total == 0  # type: ignore[attr-defined]
