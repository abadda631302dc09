"""The runtime, with coordinators that count: elections, loading, appends, commits, resignations, the stop."""

from __future__ import annotations

import asyncio
import errno
import gc
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from pybroker.coordinator.runtime import service as service_module
from pybroker.coordinator.runtime.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
from pybroker.machine.runner import ClosedError, UncommittedError, UnwritableError
from pybroker.protocol.errors import UnencodableValue, UnsupportedVersion
from pybroker.storage.errors import BatchTooLargeError, NotEnoughReplicasError, NotLeaderError
from tests.support.counting import Add, AddAt, Counting, CountingCodec, CountingMachine, MemoryLog, Total, Wait, image

# ------------------------------------------------------------------------------------------ election and loading


async def test_an_elected_shard_knows_what_its_log_holds_and_handles_loaded_first() -> None:
    stand = Counting(logs={0: MemoryLog(1, 2, 3, 4, 5, 6, 7, 8, 9)})
    await stand.elected(1)
    (machine,) = stand.runtime.machines()
    assert await stand.runtime.submit("0", Add(5)) == 50
    assert machine.loaded
    await stand.runtime.close()


async def test_while_it_loads_it_refuses_and_afterwards_it_answers() -> None:
    stand, go_on = Counting(logs={0: MemoryLog(1), 1: MemoryLog(2)}, partitions=2), threading.Event()
    stand.logs[0].before_read = lambda: go_on.wait(60)
    stand.runtime.follow(image(1, 2))
    for query in (lambda: stand.runtime.submit("0", Total()), lambda: stand.runtime.submit_to(0, Total())):
        with pytest.raises(CoordinatorLoadInProgressError):
            query()
    with pytest.raises(CoordinatorLoadInProgressError):
        await stand.runtime.submit_all(Total())
    with pytest.raises(NotCoordinatorError):
        stand.runtime.submit("1", Total())
    go_on.set()
    await stand.runtime.loaded()
    assert await stand.runtime.submit_all(Total()) == [1]
    await stand.runtime.close()


async def test_what_is_appended_while_it_loads_is_counted_once() -> None:
    log = MemoryLog(*range(1, 101))
    stand, more = Counting(logs={0: log}), MemoryLog(*[1000] * 10).written

    def grow() -> None:
        if more:
            log.append(more.pop(), 0)

    log.before_read = grow
    await stand.elected(1)
    assert await stand.runtime.submit("0", Total()) == 5050 + 10_000
    await stand.runtime.close()


async def test_a_long_log_is_loaded_in_turns_of_the_loop() -> None:
    stand = Counting(logs={0: MemoryLog(*[1] * 200)})
    stand.runtime.follow(image(1))
    turns, loading = 0, asyncio.ensure_future(stand.runtime.loaded())
    while not loading.done():
        await asyncio.wait([loading], timeout=0)
        turns += 1
    assert turns > 20
    assert await stand.runtime.submit("0", Total()) == 200
    await stand.runtime.close()


async def test_before_there_is_a_topic_nobody_coordinates() -> None:
    stand = Counting(partitions=3)
    stand.runtime.follow(image())
    with pytest.raises(NotCoordinatorError):
        stand.runtime.submit("0", Total())
    assert await stand.runtime.submit_all(Total()) == []
    assert [stand.runtime.partition_for(key) for key in ("4", "5")] == [1, 2]
    await stand.elected(1, 1)
    assert [stand.runtime.partition_for(key) for key in ("4", "5")] == [0, 1]
    await stand.runtime.close()


async def test_two_shards_have_separate_fates(caplog: pytest.LogCaptureFixture) -> None:
    damaged = MemoryLog(1)
    damaged.before_read = _raise(OSError(errno.EIO, "the disk is damaged"))
    stand = Counting(logs={0: damaged, 1: MemoryLog(7)}, partitions=2)
    await stand.elected(1, 1)
    with pytest.raises(NotCoordinatorError):
        stand.runtime.submit("0", Total())
    assert await stand.runtime.submit("1", Add(1)) == 8
    assert await stand.runtime.submit_all(Total()) == [8]
    assert "the counts of __counts-0 cannot be loaded" in caplog.text
    stand.logs[1].failure = NotLeaderError("moved")
    damaged.before_read = lambda: None
    await stand.elected(1, 1, epoch=1)
    assert await stand.runtime.submit("0", Add(1)) == 2, "the next election tries again"
    with pytest.raises(NotCoordinatorError):
        await stand.runtime.submit("1", Add(1))
    await stand.runtime.close()


@pytest.mark.parametrize("failure", [RuntimeError("a fault"), KeyError("a", "b"), RecursionError()])
async def test_what_nobody_expected_at_a_load_is_logged_with_its_place(
    failure: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Counting(logs={0: MemoryLog(1)})
    with monkeypatch.context() as patched:
        patched.setattr(CountingMachine, "load", _raise(failure))
        await stand.elected(1)
    with pytest.raises(NotCoordinatorError):
        stand.runtime.submit("0", Total())
    (logged,) = [record for record in caplog.records if "cannot be loaded" in record.getMessage()]
    assert logged.exc_info is not None
    await stand.runtime.close()


async def test_a_log_that_lacks_a_descriptor_is_loaded_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "_AGAIN_S", 0)
    log, refusals = MemoryLog(1, 2), [OSError(errno.EMFILE, "too many")] * 2

    def lack() -> None:
        if refusals:
            raise refusals.pop()

    log.before_read = lack
    stand = Counting(logs={0: log})
    await stand.elected(1)
    assert refusals == []
    assert await stand.runtime.submit("0", Total()) == 3
    await stand.runtime.close()


async def test_a_log_that_is_opened_later_is_loaded_then() -> None:
    stand = Counting(logs={})
    await stand.elected(1)
    with pytest.raises(NotCoordinatorError):
        stand.runtime.submit("0", Total())
    stand.logs[0] = MemoryLog(3)
    await stand.elected(1)
    assert await stand.runtime.submit("0", Total()) == 3
    await stand.runtime.close()


# ----------------------------------------------------------------------------------------- events and appends


async def test_what_one_step_handles_is_one_append_and_is_answered_within_it() -> None:
    stand = Counting()
    await stand.elected(1)
    responses: list[Any] = []
    for _ in range(100):
        stand.runtime.submit("0", Add(1)).on_complete(lambda reply, error: responses.append((reply, error)))
    stand.runtime.step()
    assert responses == [(number, None) for number in range(1, 101)]
    assert (stand.logs[0].appends, stand.logs[0].numbers) == (1, [1] * 100)
    assert stand.appended == [[1] * 100]
    await stand.runtime.close()


async def test_a_decision_without_records_appends_nothing() -> None:
    stand = Counting()
    await stand.elected(1)
    assert await stand.runtime.submit("0", Add(5, written=False)) == 5
    assert (stand.logs[0].appends, stand.appended) == (0, [])
    await stand.runtime.close()


async def test_an_event_waits_for_the_step_that_is_expected_and_otherwise_for_the_turn_of_the_loop() -> None:
    stand = Counting()
    await stand.elected(1)
    assert await stand.runtime.submit("0", Add(1)) == 1
    stand.runtime.expect_step()
    reply = stand.runtime.submit("0", Add(1))
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned
    assert not reply.is_set
    stand.runtime.step()
    assert (reply.is_set, reply.value) == (True, 2)
    await stand.runtime.close()


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (NotLeaderError("moved"), NotCoordinatorError),
        (OSError(28, "no space"), NotCoordinatorError),
        (NotEnoughReplicasError("alone"), CoordinatorNotAvailableError),
        (BatchTooLargeError("large"), UnwritableError),
    ],
)
async def test_a_failed_append_is_undone_and_fails_its_events(failure: Exception, kind: type[Exception]) -> None:
    stand = Counting(logs={0: MemoryLog(10)})
    await stand.elected(1)
    stand.logs[0].failure = failure
    replies = [stand.runtime.submit("0", Add(number)) for number in (1, 2, 3)]
    failures = await asyncio.gather(*replies, return_exceptions=True)
    assert [type(error) for error in failures] == [kind] * 3
    assert stand.appended == []
    stand.logs[0].failure = None
    assert await stand.runtime.submit("0", Total()) == 10
    await stand.runtime.close()


@pytest.mark.parametrize("as_a_whole", [UnencodableValue("wide"), UnsupportedVersion("old"), ValueError("wide"), None])
async def test_records_that_cannot_be_encoded_fail_their_event_alone(
    as_a_whole: Exception | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """None: the `OverflowError` of the codec itself."""
    encode = CountingCodec.encode

    def refuse(self: CountingCodec, records: Sequence[int], now_ms: int, *, max_batch_bytes: int) -> bytes:
        if as_a_whole is not None and 2**70 in records:
            raise as_a_whole
        return encode(self, records, now_ms, max_batch_bytes=max_batch_bytes)

    monkeypatch.setattr(CountingCodec, "encode", refuse)
    stand = Counting()
    await stand.elected(1)
    replies = [stand.runtime.submit("0", Add(2**70 if number == 13 else 1)) for number in range(40)]
    responses = await asyncio.gather(*replies, return_exceptions=True)
    assert isinstance(responses.pop(13), UnwritableError)
    assert responses == list(range(1, 40))
    assert stand.logs[0].numbers == [1] * 39
    assert "Failed to encode records of __counts-0" in caplog.text
    await stand.runtime.close()


async def test_records_that_the_log_has_taken_are_not_decided_again_whatever_it_says_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand = Counting()
    await stand.elected(1)
    log, append = stand.logs[0], stand.logs[0].append

    def take(batches: bytes, now_ms: int) -> tuple[int, int]:
        append(batches, now_ms)
        raise ValueError("too late")

    monkeypatch.setattr(log, "append", take)
    replies = [stand.runtime.submit("0", Add(1)) for _ in range(3)]
    failures = await asyncio.gather(*replies, return_exceptions=True)
    assert [type(error) for error in failures] == [ValueError] * 3
    assert log.numbers == [1, 1, 1]
    await stand.runtime.close()


async def test_an_event_for_all_goes_to_those_that_answer_and_is_tried_again_until_it_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pybroker.machine.runner.RETRY_MS", 0)
    stand = Counting(partitions=3)
    await stand.elected(1, 2, 1)
    stand.logs[2].failure = OSError(28, "no space")
    stand.runtime.notify_all("once", Add(4))
    while stand.logs[0].numbers != [4]:
        await stand.runtime.submit("0", Total())
    assert stand.logs[2].numbers == []
    stand.logs[2].failure = None
    while stand.logs[2].numbers != [4]:
        await stand.runtime.submit("2", Total())
    assert [log.numbers for log in stand.logs.values()] == [[4], [], [4]]
    await stand.runtime.close()


async def test_a_timer_of_a_decision_brings_its_event() -> None:
    stand = Counting()
    await stand.elected(1)
    await stand.runtime.submit("0", AddAt(6, 0))
    while stand.logs[0].numbers != [6]:
        await stand.runtime.submit("0", Total())
    assert await stand.runtime.submit("0", Total()) == 6
    await stand.runtime.close()


# ------------------------------------------------------------------------------------------------------- commits


async def test_a_reply_leaves_when_what_was_appended_is_committed() -> None:
    stand = Counting()
    await stand.elected(1)
    log = stand.logs[0]
    log.synced = 0
    responses: list[Any] = []
    stand.runtime.submit("0", Add(1)).on_complete(lambda reply, _: responses.append(reply))
    stand.runtime.step()
    for _ in range(2):
        stand.runtime.submit("0", Add(1)).on_complete(lambda reply, _: responses.append(reply))
    stand.runtime.step()
    assert (responses, log.appends) == ([], 1), "one append at a time: what comes meanwhile is the next one"
    log.synced = log.log_end_offset
    stand.commits.append_completed(log.tickets.pop())
    assert responses == [1]
    stand.runtime.step()
    assert (responses, log.appends) == ([1], 2)
    log.synced = log.log_end_offset
    stand.commits.append_completed(log.tickets.pop())
    assert responses == [1, 2, 3]
    await stand.runtime.close()


async def test_shards_wait_for_their_own_commits() -> None:
    stand = Counting(partitions=2)
    await stand.elected(1, 1)
    stand.logs[0].synced = 0
    waits = stand.runtime.submit("0", Add(1))
    stand.runtime.step()
    assert await stand.runtime.submit("1", Add(2)) == 2
    assert not waits.is_set
    stand.logs[0].synced = 1
    stand.commits.append_completed(stand.logs[0].tickets.pop())
    assert waits.value == 1
    await stand.runtime.close()


async def test_what_cannot_be_committed_is_undone_and_fails() -> None:
    stand = Counting()
    await stand.elected(1)
    await stand.runtime.submit("0", Add(1))
    log = stand.logs[0]
    log.synced = 1
    reply = stand.runtime.submit("0", Add(2))
    stand.runtime.step()
    stand.commits.append_completed(log.tickets.pop())
    with pytest.raises(NotCoordinatorError):
        await reply
    assert await stand.runtime.submit("0", Total()) == 1
    await stand.runtime.close()


async def test_a_commit_that_takes_too_long_fails_and_counts_when_it_comes_after_all() -> None:
    stand = Counting(commit_timeout_ms=1)
    await stand.elected(1)
    log = stand.logs[0]
    log.synced = 0
    first = stand.runtime.submit("0", Add(1))
    stand.runtime.step()
    behind = stand.runtime.submit("0", Add(1))
    for reply in (first, behind):
        with pytest.raises(UncommittedError):
            await reply
    log.synced = log.log_end_offset
    stand.commits.append_completed(log.tickets.pop())
    assert await stand.runtime.submit("0", Total()) == 1
    await stand.runtime.close()


# -------------------------------------------------------------------------------------------------- resignation


async def test_requests_in_work_are_failed_when_the_partition_moves() -> None:
    stand = Counting(partitions=2)
    await stand.elected(1, 1)
    delayed = _awaited(stand.runtime.submit("0", Wait()))
    stand.runtime.step()
    queued = _awaited(stand.runtime.submit("0", Add(1)))
    stand.runtime.follow(image(2, 1, epoch=0))
    with pytest.raises(ClosedError):
        await delayed
    with pytest.raises(NotCoordinatorError):
        await queued
    with pytest.raises(NotCoordinatorError):
        stand.runtime.submit("0", Total())
    assert stand.logs[0].numbers == []
    assert await stand.runtime.submit("1", Add(2)) == 2, "the other shard goes on"
    await stand.runtime.close()


async def test_an_append_that_is_committed_after_the_resignation_is_answered_and_the_next_shard_knows_it() -> None:
    stand = Counting()
    await stand.elected(1)
    log = stand.logs[0]
    log.synced = 0
    reply = stand.runtime.submit("0", Add(5))
    stand.runtime.step()
    behind = _awaited(stand.runtime.submit("0", Add(1)))
    await stand.elected(1, epoch=1)
    assert await stand.runtime.submit("0", Total()) == 5
    log.synced = log.log_end_offset
    stand.commits.append_completed(log.tickets.pop())
    assert await reply == 5
    with pytest.raises(NotCoordinatorError):
        await behind
    log.synced = None
    assert (log.numbers, await stand.runtime.submit("0", Add(1))) == ([5], 6)
    await stand.runtime.close()


async def test_a_shard_that_resigns_while_it_loads_is_not_elected_by_its_load() -> None:
    stand, go_on = Counting(logs={0: MemoryLog(1)}), threading.Event()
    stand.logs[0].before_read = lambda: go_on.wait(60)
    stand.runtime.follow(image(1))
    stand.runtime.follow(image(2, epoch=1))
    go_on.set()
    await stand.runtime.loaded()
    with pytest.raises(NotCoordinatorError):
        stand.runtime.submit("0", Total())
    assert list(stand.runtime.machines()) == []
    await stand.runtime.close()


async def test_a_deleted_topic_is_coordinated_by_nobody() -> None:
    stand = Counting()
    await stand.elected(1)
    stand.runtime.follow(image())
    with pytest.raises(NotCoordinatorError):
        stand.runtime.submit("0", Total())
    await stand.runtime.close()


# ------------------------------------------------------------------------------------------------------ the stop


async def test_a_stop_finishes_what_waits_and_fails_what_is_parked() -> None:
    stand = Counting()
    await stand.elected(1)
    delayed = _awaited(stand.runtime.submit("0", Wait()))
    stand.runtime.step()
    queued = _awaited(stand.runtime.submit("0", Add(1)))
    await stand.runtime.close()
    assert await queued == 1
    with pytest.raises(ClosedError):
        await delayed
    assert stand.logs[0].numbers == [1]
    with pytest.raises(CoordinatorNotAvailableError):
        stand.runtime.submit("0", Total())
    with pytest.raises(CoordinatorNotAvailableError):
        await stand.runtime.submit_all(Total())
    stand.runtime.follow(image(1, epoch=1))
    with pytest.raises(CoordinatorNotAvailableError):
        stand.runtime.submit("0", Total())


async def test_a_stop_does_not_wait_for_a_commit_that_does_not_come() -> None:
    stand = Counting(commit_timeout_ms=1)
    await stand.elected(1)
    stand.logs[0].synced = 0
    reply = _awaited(stand.runtime.submit("0", Add(1)))
    stand.runtime.step()
    await asyncio.wait_for(stand.runtime.close(), 60)
    with pytest.raises(UncommittedError):
        await reply


async def test_a_runtime_that_was_closed_holds_no_log_until_a_collection() -> None:
    gc.collect()
    gc.disable()
    try:
        stand = Counting(logs={0: MemoryLog(1)})
        log = weakref.ref(stand.logs[0])
        await stand.elected(1)
        await stand.runtime.submit("0", Add(1))
        await stand.runtime.close()
        stand.logs.clear()
        assert log() is None
    finally:
        gc.enable()


def _awaited(reply: Any) -> asyncio.Future[Any]:
    """A future of a reply, which listens to it from now on."""
    future = asyncio.get_running_loop().create_future()

    def complete(value: Any, error: Exception | None) -> None:
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    reply.on_complete(complete)
    return future


def _raise(failure: Exception) -> Any:
    """A function that raises whatever it is given."""

    def fail(*_: object) -> None:
        raise failure

    return fail
