from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from pybroker.broker.registration import Endpoints, Registration, RegistrationRefusedError, Unreported
from pybroker.metadata.image import EMPTY_IMAGE, BrokerRegistration, ClusterImage, MetadataImage
from pybroker.protocol.errors import ErrorCode
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.log_dirs.meta_properties import id_bytes

ENDPOINTS = Endpoints({"INTERNAL": ("h", 9092)}, {"INTERNAL": 3}, rack="r")
TOPIC_ID = b"t" * 16


class UnreachableError(Exception):
    """The controller cannot be asked."""


class DelayedReply(NamedTuple):
    error_code: ErrorCode
    error_message: str | None
    broker_epoch: int


class Registrar:
    """A controller that notes what it is asked."""

    def __init__(self, response: DelayedReply) -> None:
        self.response = response
        self.registered: list[dict[str, Any]] = []
        self.reports: asyncio.Queue[tuple[int, int, Any]] = asyncio.Queue()
        self.reported = DelayedReply(ErrorCode.NONE, None, -1)
        self.unreachable = False

    async def register_broker(self, broker_id: int, **registration: Any) -> DelayedReply:
        self.registered.append({"broker_id": broker_id, **registration})
        return self.response

    async def assign_replicas(
        self, broker_id: int, epoch: int, directories: Mapping[tuple[bytes, int], bytes]
    ) -> DelayedReply:
        await self._report(broker_id, epoch, directories)
        return self.reported

    async def fail_log_directories(self, broker_id: int, epoch: int, directories: Sequence[bytes]) -> DelayedReply:
        await self._report(broker_id, epoch, directories)
        return self.reported

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        return range(broker_id, broker_epoch)

    async def _report(self, broker_id: int, epoch: int, what: Any) -> None:
        await self.reports.put((broker_id, epoch, what))
        if self.unreachable:
            raise UnreachableError("nobody leads")


class Run:
    """A broker with two log directories that registers."""

    def __init__(self, root: Path, response: DelayedReply, within_ms: int = 60_000) -> None:
        paths = [root / "a", root / "b"]
        self.directories = Directories.acquire(paths, paths[0], 3)
        self.directories.format(3)
        self.registrar = Registrar(response)
        self.given_up: asyncio.Queue[str] = asyncio.Queue()
        unreported = Unreported(within_ms, self.given_up.put_nowait)
        self.registration = Registration(3, self.directories, lambda: self.registrar, UnreachableError, unreported)

    def ids(self) -> list[bytes]:
        return [id_bytes(directory.meta.directory_id) for directory in self.directories.logs if directory.meta]


@pytest.fixture
async def run(tmp_path: Path) -> Run:
    return Run(tmp_path, DelayedReply(ErrorCode.NONE, None, 77))


async def test_a_broker_registers_with_the_directories_that_work(run: Run) -> None:
    run.directories.logs[1].offline = True
    await run.registration.register(ENDPOINTS)
    (registered,) = run.registrar.registered
    assert registered["log_dirs"] == (run.ids()[0],)
    assert registered["listeners"] == ENDPOINTS.listeners
    assert registered["security_protocols"] == {"INTERNAL": 3}
    assert (registered["broker_id"], registered["rack"], registered["fenced"]) == (3, "r", False)
    assert run.registration.epoch == 77
    assert await run.registration.allocate_producer_ids() == range(3, 77)


async def test_a_registration_that_is_done_twice_has_the_later_epoch(run: Run) -> None:
    await run.registration.register(ENDPOINTS)
    (sent,) = run.registrar.registered

    def known(broker: int, incarnation: bytes, epoch: int) -> MetadataImage:
        registered = BrokerRegistration(broker, incarnation, epoch, listeners={}, security_protocols={})
        return msgspec.structs.replace(EMPTY_IMAGE, cluster=ClusterImage({broker: registered}))

    own = sent["incarnation_id"]
    for image in (EMPTY_IMAGE, known(3, own, 77), known(3, bytes(16), 80), known(4, own, 80)):
        assert not run.registration.follow(image)
        assert run.registration.epoch == 77
    assert run.registration.follow(known(3, own, 80))
    assert run.registration.epoch == 80
    assert not run.registration.follow(known(3, own, 77))


async def test_a_registration_that_is_repeated_is_the_same_incarnation(run: Run) -> None:
    await run.registration.register(ENDPOINTS)
    await run.registration.register(ENDPOINTS)
    assert len({registered["incarnation_id"] for registered in run.registrar.registered}) == 1


async def test_a_refusal_is_an_error_with_the_controllers_words(tmp_path: Path) -> None:
    run = Run(tmp_path, DelayedReply(ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another one is alive", -1))
    with pytest.raises(RegistrationRefusedError, match="the controller rejected this broker: another one is alive"):
        await run.registration.register(ENDPOINTS)
    assert run.registration.epoch == -1


async def test_what_is_reported_before_the_registration_is_sent_after_it_with_its_epoch(run: Run) -> None:
    placed = {(TOPIC_ID, 0): run.ids()[1]}
    run.registration.report_placed(placed)
    run.directories.logs[1].offline = True
    run.registration.report_failed_directories()
    assert run.registrar.reports.empty()
    await run.registration.register(ENDPOINTS)
    assert await asyncio.wait_for(run.registrar.reports.get(), 60) == (3, 77, placed)
    assert await asyncio.wait_for(run.registrar.reports.get(), 60) == (3, 77, [run.ids()[1]])


async def test_a_report_that_the_controller_does_not_take_is_logged(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run.registrar.unreachable = True
    await run.registration.register(ENDPOINTS)
    run.registration.report_placed({})
    await asyncio.wait_for(run.registrar.reports.get(), 60)
    await run.registration.stop()
    assert "Failed to report the log directories to the controller: nobody leads" in caplog.text


@pytest.mark.parametrize("refuses", [True, False])
async def test_a_broker_that_cannot_report_a_failed_directory_gives_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, refuses: bool
) -> None:
    run = Run(tmp_path, DelayedReply(ErrorCode.NONE, None, 77), within_ms=20)
    if refuses:
        run.registrar.reported = DelayedReply(ErrorCode.STALE_BROKER_EPOCH, "not this one", -1)
    else:
        run.registrar.unreachable = True
    await run.registration.register(ENDPOINTS)
    run.directories.logs[1].offline = True
    run.registration.report_failed_directories()
    reason = await asyncio.wait_for(run.given_up.get(), 60)
    assert reason == (
        "no controller took within log.dir.failure.timeout.ms=20 the report that a log directory failed: "
        f"{tmp_path / 'b'}"
    )
    await run.registration.stop()
    assert ("STALE_BROKER_EPOCH: not this one" if refuses else "nobody leads") in caplog.text


async def test_lost_replicas_are_reported_until_the_controller_has_noted_them(tmp_path: Path) -> None:
    run = Run(tmp_path, DelayedReply(ErrorCode.NONE, None, 7))
    await run.registration.register(ENDPOINTS, fenced=True)
    run.registrar.unreachable = True
    reporting = asyncio.ensure_future(run.registration.report_lost([(b"t" * 16, 3)]))
    lost = {(b"t" * 16, 3): bytes(15) + b"\x01"}
    assert await run.registrar.reports.get() == (3, 7, lost), "DirectoryId.LOST is the id 1"
    run.registrar.unreachable = False
    run.registrar.reported = DelayedReply(ErrorCode.STALE_BROKER_EPOCH, "newer", -1)
    while (await run.registrar.reports.get()) and run.registrar.reported.error_code:
        assert not reporting.done()
        run.registrar.reported = DelayedReply(ErrorCode.NONE, None, -1)
    await asyncio.wait_for(reporting, 60)
