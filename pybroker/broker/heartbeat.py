"""A broker's registration and heartbeats, up to its controlled shutdown.

Owns the task that sends heartbeats, and the waiting for registration, unfencing and shutdown. Must not decide what is
sent when (`pybroker/broker/lifecycle.py` does), nor how the controller is reached. The only node of a cluster sends no
heartbeats, as its controller is in the same process.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from pybroker.broker.lifecycle import Lifecycle, Membership, RequestedState
from pybroker.broker.registration import RegistrationRefusedError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.broker.lifecycle import LifecycleSettings
    from pybroker.broker.registration import Endpoints, Registration

log = logging.getLogger("pybroker.broker")

_FINAL = frozenset(
    {
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""Errors of a registration that are not retried: the broker's configuration or its version is wrong."""


class Beaten(Protocol):
    """The controller's response to a heartbeat."""

    @property
    def error_code(self) -> ErrorCode:
        """NONE, or why the heartbeat is rejected."""

    @property
    def error_message(self) -> str | None:
        """The error message."""

    @property
    def is_fenced(self) -> bool:
        """Whether the broker is fenced."""

    @property
    def should_shut_down(self) -> bool:
        """Whether the broker may stop now."""


class Controller(Protocol):
    """The part of the controller that receives heartbeats."""

    async def heartbeat(
        self, broker_id: int, broker_epoch: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> Beaten:
        """Send a heartbeat, with the requested changes of the broker's state."""


class Heartbeats:
    """The heartbeats of one run of a broker. Used from one event loop."""

    def __init__(
        self,
        node_id: int,
        registration: Registration,
        controller: Callable[[], Controller],
        unreachable: type[Exception],
        settings: LifecycleSettings,
        now: Callable[[], int],
    ) -> None:
        """`controller` returns the active one, which may raise `unreachable`.

        `now` is a monotonic clock in milliseconds.
        """
        self._node_id = node_id
        self._registration = registration
        self._controller = controller
        self._unreachable = unreachable
        self._settings = settings
        self._now = now
        self._life = Lifecycle(settings, now())
        # Set when the requested state differs from that of the last heartbeat.
        self._due = asyncio.Event()
        self._unfenced = asyncio.Event()
        # Whether the controller has allowed this broker to stop.
        self._released = False
        self._beating: asyncio.Task[None] | None = None
        # Why heartbeats fail, None while they succeed. Only the first failure and the next success are logged.
        self._failure: str | None = None

    @property
    def state(self) -> Membership:
        """The membership state of the broker."""
        return self._life.state

    async def register(self, endpoints: Endpoints) -> None:
        """Register with retries, and start sending heartbeats. The broker stays fenced until `opened` is called.

        Raises `RegistrationRefusedError` after the timeout, or for an error that is not retried.
        """
        while True:
            try:
                await self._registration.register(endpoints, fenced=True)
            except RegistrationRefusedError as error:
                if error.code in _FINAL:
                    raise
                failure: Exception = error
            except self._unreachable as error:
                failure = error
            else:
                break
            pause_ms = self._life.step_unregistered(self._now())
            if pause_ms is None:
                raise RegistrationRefusedError(
                    "the registration of this broker failed within initial.broker.registration.timeout.ms="
                    f"{self._settings.registration_timeout_ms}: {failure}",
                    ErrorCode.REQUEST_TIMED_OUT,
                ) from failure
            self._note_failure(f"this broker is not registered yet: {failure}")
            await asyncio.sleep(pause_ms / 1000)
        self._note_success()
        self._life.step_registered()
        log.info("registered as broker %d with epoch %d", self._node_id, self._registration.epoch)
        self._beating = asyncio.ensure_future(self._beat())
        self._beating.add_done_callback(_note_end)

    def opened(self) -> None:
        """Request to be unfenced: the metadata is replayed up to the registration, and the partitions are open."""
        self._life.step_opened()
        self._due.set()

    async def unfenced(self) -> None:
        """Wait until the broker is unfenced."""
        if self._beating is None:
            raise RuntimeError("a broker must register before it sends heartbeats")
        unfenced = asyncio.ensure_future(self._unfenced.wait())
        try:
            await asyncio.wait({unfenced, self._beating}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            unfenced.cancel()
        if self._beating.done():
            self._beating.result()

    async def leave(self) -> bool:
        """Do a controlled shutdown. Return whether the controller has moved leadership to other brokers."""
        if self._beating is None or self._beating.done():
            return False
        if self._life.state is not Membership.LEAVING:
            log.info("controlled shutdown: waiting for the controller to move leadership to other brokers")
            self._life.step_leave(self._now())
            self._due.set()
        await asyncio.shield(self._beating)
        return self._released

    async def stop(self) -> None:
        """Stop sending heartbeats."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)

    async def _beat(self) -> None:
        pause_ms: int | None = 0
        while pause_ms is not None:
            await self._is_due(asyncio.sleep(pause_ms / 1000))
            self._due.clear()
            sending = asyncio.ensure_future(self._send(self._life.requested_state))
            # A changed request is sent without waiting for the response to the previous heartbeat.
            pause_ms = sending.result() if await self._is_due(sending) else 0

    async def _is_due(self, waiting: Awaitable[object]) -> bool:
        """Wait for `waiting` or for a changed request. Return whether `waiting` completed."""
        awaited, due = asyncio.ensure_future(waiting), asyncio.ensure_future(self._due.wait())
        try:
            await asyncio.wait({awaited, due}, return_when=asyncio.FIRST_COMPLETED)
            return awaited.done()
        finally:
            awaited.cancel()
            due.cancel()

    async def _send(self, requested_state: RequestedState) -> int | None:
        """Send one heartbeat. Return the pause before the next one in milliseconds, None if it was the last."""
        try:
            async with asyncio.timeout(self._life.patience_s):
                response = await self._controller().heartbeat(
                    self._node_id,
                    self._registration.epoch,
                    want_fence=requested_state.want_fence,
                    want_shut_down=requested_state.want_shut_down,
                )
        except TimeoutError:
            failure = "no response"
        except self._unreachable as error:
            failure = str(error)
        else:
            if not response.error_code:
                self._note_success()
                return self._responded(requested_state, response)
            failure = f"{response.error_code.name}: {response.error_message or response.error_code.message}"
        self._note_failure(f"the controller does not accept this broker's heartbeats: {failure}")
        pause_ms = self._life.step_unanswered(self._now())
        if pause_ms is None:
            log.warning("controlled shutdown: no controller responds: stopping without moving leadership")
        return pause_ms

    def _responded(self, requested_state: RequestedState, response: Beaten) -> int | None:
        before = self._life.state
        pause_ms = self._life.step_responded(
            requested_state, self._now(), is_fenced=response.is_fenced, should_shut_down=response.should_shut_down
        )
        if before is Membership.READY and self._life.state is Membership.RUNNING:
            log.info("unfenced: this broker can lead partitions")
            self._unfenced.set()
        elif before is Membership.RUNNING and self._life.state is Membership.READY:
            log.warning("fenced by the controller: this broker leads no partitions until it is unfenced")
        if pause_ms is None:
            self._released = response.should_shut_down
            released = "the controller allows this broker to stop" if response.should_shut_down else "it timed out"
            log.info("controlled shutdown: %s", released)
        return pause_ms

    def _note_failure(self, failure: str) -> None:
        if self._failure is None:
            log.warning("%s; retrying", failure)
        self._failure = failure

    def _note_success(self) -> None:
        if self._failure is not None:
            log.info("The controller responds to this broker again")
        self._failure = None


def _note_end(beating: asyncio.Task[None]) -> None:
    if not beating.cancelled() and (error := beating.exception()) is not None:
        log.error("Heartbeats have failed: the controller will fence this broker", exc_info=error)
