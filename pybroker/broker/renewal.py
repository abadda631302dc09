"""A registration that is renewed, as the broker's listeners have changed.

Owns the tries. Must not know what a registration holds, nor why it is renewed.
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
    """One run of a broker. Used from the event loop."""

    def __init__(self, register: Callable[[], Awaitable[None]], unreachable: type[Exception]) -> None:
        """`register` registers what is true then; `unreachable` is raised where the controller cannot be asked."""
        self._register = register
        self._unreachable = unreachable
        self._wanted = False
        self._work: asyncio.Task[None] | None = None

    def want(self) -> None:
        """Register anew, as often as it takes."""
        self._wanted = True
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._renew())

    async def done(self) -> None:
        """Wait until nothing is to be registered."""
        if self._work is not None:
            await asyncio.gather(self._work, return_exceptions=True)

    async def stop(self) -> None:
        """Register nothing more."""
        if self._work is not None:
            self._work.cancel()
            await self.done()

    async def _renew(self) -> None:
        is_said = False
        while self._wanted:
            self._wanted = False
            try:
                await self._register()
            except RegistrationRefusedError as error:
                log.error("The changed listeners are not registered: %s", error)
            except self._unreachable as error:
                if not is_said:
                    log.warning("The changed listeners are not registered yet: %s; retrying", error)
                is_said = self._wanted = True
                await asyncio.sleep(_PAUSE_S)
