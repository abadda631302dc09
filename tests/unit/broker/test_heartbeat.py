from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pybroker.broker.heartbeat import Heartbeats
from pybroker.broker.lifecycle import LifecycleSettings, Membership
from pybroker.broker.registration import Endpoints, Registration, RegistrationRefusedError, Unreported
from pybroker.protocol.errors import ErrorCode
from pybroker.storage.log_dirs.directories import Directories

ENDPOINTS = Endpoints({"PLAINTEXT": ("h", 9092)}, {}, rack=None)
NODE, EPOCH = 3, 42


class UnreachableError(Exception):
    """The controller cannot be asked."""


class Registered(NamedTuple):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    broker_epoch: int = EPOCH


class Beaten(NamedTuple):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    is_fenced: bool = False
    should_shut_down: bool = False


class Controller:
    """A controller that answers with what a test puts into it, and else keeps the broker as it wants to be."""

    def __init__(self) -> None:
        self.registrations: list[Registered | Exception] = []
        self.beats: list[Beaten | Exception] = []
        self.wishes: asyncio.Queue[tuple[bool, bool]] = asyncio.Queue()
        self.requested = 0
        self.silent = asyncio.Event()
        self.silent.set()

    async def register_broker(self, broker_id: int, *, fenced: bool, **_: Any) -> Registered:
        assert (broker_id, fenced) == (NODE, True)
        self.requested += 1
        return _next(self.registrations, Registered())

    async def heartbeat(
        self, broker_id: int, broker_epoch: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> Beaten:
        assert (broker_id, broker_epoch) == (NODE, EPOCH)
        await self.wishes.put((want_fence, want_shut_down))
        await self.silent.wait()
        return _next(self.beats, Beaten(is_fenced=want_fence, should_shut_down=want_shut_down))

    async def assign_replicas(
        self, broker_id: int, epoch: int, directories: Mapping[tuple[bytes, int], bytes]
    ) -> Registered:
        """Take a report."""
        return Registered()

    async def fail_log_directories(self, broker_id: int, epoch: int, directories: Sequence[bytes]) -> Registered:
        """Take a report."""
        return Registered()

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        return range(broker_id, broker_epoch)


def _next(script: list[Any], otherwise: Any) -> Any:
    response = script.pop(0) if script else otherwise
    if isinstance(response, Exception):
        raise response
    return response


class Run:
    """One broker; its clock moves by a second whenever somebody looks at it."""

    def __init__(self, root: Path) -> None:
        self.controller = Controller()
        directories = Directories.acquire([root], root, NODE)
        directories.format(NODE)
        self.directories = directories
        registration = Registration(
            NODE, directories, lambda: self.controller, UnreachableError, Unreported(60_000, pytest.fail)
        )
        self.now = 0
        settings = LifecycleSettings(heartbeat_interval_ms=1, registration_timeout_ms=5000)
        self.heartbeats = Heartbeats(
            NODE, registration, lambda: self.controller, UnreachableError, settings, now=self._look_at_the_clock
        )

    def _look_at_the_clock(self) -> int:
        self.now += 1000
        return self.now


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    run = Run(tmp_path)
    yield run
    await run.heartbeats.stop()
    run.directories.release()


async def test_a_broker_is_fenced_until_it_has_opened_its_partitions(run: Run) -> None:
    await run.heartbeats.register(ENDPOINTS)
    assert await run.controller.wishes.get() == (True, False)
    assert await run.controller.wishes.get() == (True, False)
    run.heartbeats.opened()
    await run.heartbeats.unfenced()
    assert run.heartbeats.state is Membership.RUNNING


async def test_a_registration_is_tried_until_the_controller_takes_it(run: Run) -> None:
    run.controller.registrations = [
        UnreachableError("nobody leads"),
        Registered(ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another one is alive", -1),
        Registered(),
    ]
    await run.heartbeats.register(ENDPOINTS)
    assert run.heartbeats.state is Membership.CATCHING_UP
    assert run.controller.requested == 3


async def test_a_registration_ends_with_its_time_and_says_what_kept_it(run: Run) -> None:
    run.controller.registrations = [Registered(ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another one is alive", -1)] * 9
    with pytest.raises(RegistrationRefusedError, match=r"timeout.ms=5000: .*another one is alive") as refused:
        await run.heartbeats.register(ENDPOINTS)
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT


async def test_what_another_try_does_not_change_ends_a_registration_at_once(run: Run) -> None:
    run.controller.registrations = [Registered(ErrorCode.INCONSISTENT_CLUSTER_ID, "this is cluster x", -1)]
    with pytest.raises(RegistrationRefusedError, match="this is cluster x"):
        await run.heartbeats.register(ENDPOINTS)
    assert run.controller.requested == 1


async def test_what_is_wanted_anew_does_not_wait_for_an_answer_that_does_not_come(run: Run) -> None:
    run.controller.silent.clear()
    await run.heartbeats.register(ENDPOINTS)
    assert await run.controller.wishes.get() == (True, False)
    run.heartbeats.opened()
    assert await run.controller.wishes.get() == (False, False)
    run.controller.silent.set()
    await run.heartbeats.unfenced()


async def test_a_broker_that_was_taken_for_dead_asks_to_be_unfenced(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    await run.heartbeats.register(ENDPOINTS)
    run.heartbeats.opened()
    await run.heartbeats.unfenced()
    run.controller.beats = [Beaten(is_fenced=True)]
    while run.controller.beats or run.heartbeats.state is not Membership.RUNNING:
        await run.controller.wishes.get()
    assert "fenced by the controller: this broker leads no partitions" in caplog.text


async def test_heartbeats_that_fail_go_on_and_have_one_line(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    await run.heartbeats.register(ENDPOINTS)
    run.controller.beats = [
        UnreachableError("nobody leads"),
        Beaten(ErrorCode.STALE_BROKER_EPOCH, "expected 43"),
        UnreachableError("nobody leads"),
    ]
    while run.controller.beats:
        await run.controller.wishes.get()
    run.heartbeats.opened()
    await run.heartbeats.unfenced()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "the controller does not accept this broker's heartbeats: nobody leads; retrying"
    ]


async def test_a_broker_leaves_when_the_controller_lets_it(run: Run) -> None:
    await run.heartbeats.register(ENDPOINTS)
    run.heartbeats.opened()
    await run.heartbeats.unfenced()
    run.controller.beats = [Beaten(), Beaten(), Beaten(is_fenced=True, should_shut_down=True)]
    assert await run.heartbeats.leave()
    assert run.heartbeats.state is Membership.LEFT
    assert not await run.heartbeats.leave()


async def test_a_stop_does_not_wait_for_a_controller_that_is_gone(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    await run.heartbeats.register(ENDPOINTS)
    run.controller.beats = [UnreachableError("nobody leads")] * 100
    assert not await run.heartbeats.leave()
    assert run.heartbeats.state is Membership.LEFT
    assert "stopping without moving leadership" in caplog.text


async def test_a_fault_of_ours_is_not_waited_for(run: Run) -> None:
    await run.heartbeats.register(ENDPOINTS)
    run.controller.beats = [ValueError("a bug")]
    with pytest.raises(ValueError, match="a bug"):
        await run.heartbeats.unfenced()
