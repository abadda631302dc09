"""The end of a broker: which part ends after which, and what follows from one that fails.

Owns the order of the stages, and whether the stop is clean so far. Must not know the parts: the code that builds one
says how it ends, and in which stage.
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
    """When a part ends: it may need what ends in a later stage, and nothing needs it that ends in one."""

    UPKEEP = 1
    """What works on logs by itself begins nothing new."""
    ACCEPTING = 2
    """Listeners take no more connections."""
    PARKED_REQUESTS = 3
    """Members that wait for a rebalance are answered, and do not hold up the stop."""
    REQUESTS = 4
    """Requests that have begun are answered."""
    CONNECTIONS = 5
    """Connections are closed; those that ask meanwhile are answered."""
    EVENTS = 6
    """The data plane's events are not taken any more."""
    ROLES = 7
    """Partitions change no more."""
    REPORTS = 8
    """The controller receives no more reports."""
    FLUSHES = 9
    """Flushes that are under way have ended."""
    LOGS = 10
    """Logs are closed, and what vouches for them is written."""
    CONTROLLER_REQUESTS = 11
    """Other nodes' requests to this node's controller that have begun are answered."""
    CONTROLLER_CONNECTIONS = 12
    """Their connections are closed, and nobody asks this node's controller any more."""
    METADATA_LOG = 13
    """The controller's log is closed."""
    WORKERS = 14
    """No thread works on disks any more."""
    DIRECTORIES = 15
    """Locks are given back."""


class _Part(msgspec.Struct, frozen=True):
    stage: Stage
    name: str
    end: Callable[[], Awaitable[object] | None]


class ShutDown:
    """The parts of a broker that run, and how each of them ends."""

    def __init__(self) -> None:
        # Invariant: the parts that have begun and not ended, in the order of their beginning.
        self._parts: list[_Part] = []
        self._is_clean = True

    @property
    def is_clean(self) -> bool:
        """Whether the broker has run and every part so far has ended without a failure."""
        return self._is_clean

    def add(self, stage: Stage, part: object, end: Callable[[], Awaitable[object] | None]) -> None:
        """Take a part that has begun; `end` ends it. What a failure is logged with is `part`, or its class's name."""
        self._parts.append(_Part(stage, part if isinstance(part, str) else type(part).__name__, end))

    async def run(self, *, clean: bool) -> None:
        """End every part by its stage, those of one stage in the order of their beginning.

        A part that fails is logged and does not keep the others, but what is closed after it is not called clean: the
        next start reads it. `clean` is whether the broker has run.
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
