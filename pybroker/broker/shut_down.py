"""The shutdown of a broker: the order in which parts end, and the handling of failures.

Owns the order of the stages, and whether the shutdown is clean so far. Must not know the parts: the code that builds a
part registers its end and stage.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger("pybroker.broker")


class Stage(IntEnum):
    """The stage in which a part ends. A part may use parts that end in later stages, but not the reverse."""

    MAINTENANCE = 1
    """Background tasks of logs start no new work."""
    ACCEPTING = 2
    """Listeners do not accept connections any more."""
    DELAYED_REQUESTS = 3
    """Delayed requests, such as those of members in a rebalance, are completed so that they do not delay the shutdown.
    """
    REQUESTS = 4
    """Requests in progress are completed."""
    CONNECTIONS = 5
    """Connections are closed. Requests that still arrive are served."""
    EVENTS = 6
    """Events of the data plane are not handled any more."""
    ROLES = 7
    """Partitions do not change their roles any more."""
    REPORTS = 8
    """Reports are not sent to the controller any more."""
    FLUSHES = 9
    """Flushes in progress are completed."""
    LOGS = 10
    """Logs are closed, and the files that mark a clean shutdown are written."""
    CONTROLLER_REQUESTS = 11
    """Requests of other nodes to this controller that are in progress are completed."""
    CONTROLLER_CONNECTIONS = 12
    """Connections of other nodes to this controller are closed."""
    METADATA_LOG = 13
    """The controller's log is closed."""
    WORKERS = 14
    """Worker threads end."""
    DIRECTORIES = 15
    """Directory locks are released."""


class _Part(msgspec.Struct, frozen=True):
    stage: Stage
    name: str
    end: Callable[[], Awaitable[object] | None]


class ShutDown:
    """The running parts of a broker and their ends."""

    def __init__(self) -> None:
        # Invariant: the parts that are started and not ended, in the order of their start.
        self._parts: list[_Part] = []
        self._is_clean = True

    @property
    def is_clean(self) -> bool:
        """Whether the broker has served, and all parts so far have ended without a failure."""
        return self._is_clean

    def add(self, stage: Stage, part: object, end: Callable[[], Awaitable[object] | None]) -> None:
        """Register a started part; `end` ends it. `part`, or the name of its class, is used in log messages."""
        self._parts.append(_Part(stage, part if isinstance(part, str) else type(part).__name__, end))

    async def run(self, *, clean: bool) -> None:
        """End all parts by stage, and within a stage in the order of their start.

        A failure is logged, and the other parts are still ended. Logs that are closed after a failure are not marked as
        clean, so the next start recovers them. `clean` is whether the broker has served.
        """
        self._is_clean = clean
        parts, self._parts = sorted(self._parts, key=lambda part: part.stage), []
        for part in parts:
            self._is_clean &= await _ended(part)


async def _ended(part: _Part) -> bool:
    try:
        ending = part.end()
        if ending is not None:
            await ending
    except OSError as error:
        log.error("%s did not end cleanly: %s", part.name, error)
    except Exception:
        log.exception("%s did not end cleanly", part.name)
    else:
        return True
    return False
