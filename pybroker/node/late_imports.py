"""What a start has left out is imported right after it, a module at a time.

Owns when that is. Nobody waits for these modules at a start, and the first request of an API does not wait for its
handler long. All code of a node is read soon: an upgrade of the installed package under a running node changes nothing
of it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from pybroker.handlers.served import handlers_of
from pybroker.protocol.listener_role import ListenerRole

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.getLogger("pybroker")

_FIRST_S = 0.25
"""What asks for a broker as soon as it is there has the cores for itself."""
_PAUSE_S = 0.01
"""After each module, which takes a millisecond or two: requests go between them."""
_AGAIN_S = 1
_COORDINATORS = (
    "pybroker.coordinator.group.machine",
    "pybroker.coordinator.transaction.machine",
)
_QUORUM = ("pybroker.controller.quorum.snapshot_fetch",)


def late_modules(*, broker: bool, controller: bool) -> list[str]:
    """Return the modules that nodes of these roles may need later on."""
    of_broker = [*handlers_of(ListenerRole.BROKER), *_COORDINATORS] if broker else []
    of_controller = [*handlers_of(ListenerRole.CONTROLLER), *_QUORUM] if controller else []
    return [*of_broker, *of_controller]


class LateImports:
    """Imports modules that are not there yet, with pauses: on the loop, where the others of a node are imported."""

    def __init__(self, modules: Iterable[str]) -> None:
        """Begin, on the running loop."""
        self._task = asyncio.ensure_future(_import(modules))

    async def finished(self) -> None:
        """Wait until all are there that can be."""
        await self._task

    def end(self) -> None:
        """Import no more; the rest comes with its first request."""
        self._task.cancel()


async def _import(modules: Iterable[str]) -> None:
    await asyncio.sleep(_FIRST_S)
    is_said = False
    for name in modules:
        while name not in sys.modules:
            try:
                import_module(name)
            except OSError as error:  # no descriptor is left: there will be
                if not is_said:
                    log.warning("%s cannot be read yet, and is tried again each second: %s", name, error)
                is_said = True
                await asyncio.sleep(_AGAIN_S)
            except ImportError as error:
                log.error("%s: the installed package was changed while it ran: %s", name, error)
                break
            else:
                await asyncio.sleep(_PAUSE_S)
