"""The renewal of a registration after the broker's listeners have changed.

Owns the retries. Must not know the content of a registration, nor the reason of the renewal.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from pybroker.broker.registration import RegistrationRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger("pybroker.broker")

_PAUSE_S = 1.0


class Renewal:
    """The renewals of one run of a broker. Used from the event loop."""

    def __init__(self, register: Callable[[], Awaitable[None]], unreachable: type[Exception]) -> None:
        """`register` registers the current listeners. It raises `unreachable` if the controller cannot be reached."""
        self._register = register
        self._unreachable = unreachable
        self._wanted = False
        self._work: asyncio.Task[None] | None = None

    def want(self) -> None:
        """Register again, with retries."""
        self._wanted = True
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._renew())

    async def done(self) -> None:
        """Wait until all requested renewals are done."""
        if self._work is not None:
            await asyncio.gather(self._work, return_exceptions=True)

    async def stop(self) -> None:
        """Stop renewals."""
        if self._work is not None:
            self._work.cancel()
            await self.done()

    async def _renew(self) -> None:
        is_reported = False
        while self._wanted:
            self._wanted = False
            try:
                await self._register()
            except RegistrationRefusedError as error:
                log.error("Failed to register the changed listeners: %s", error)
            except self._unreachable as error:
                if not is_reported:
                    log.warning("Failed to register the changed listeners: %s; retrying", error)
                is_reported = self._wanted = True
                await asyncio.sleep(_PAUSE_S)
