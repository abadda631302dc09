"""A coordinator that does not answer: whether another broker coordinates the group by now.

A paused broker, or one that a network has cut off, keeps connections and answers nothing; the cluster gives its groups
to another after a while. Owns the question that is asked meanwhile, so that who waits for an answer does not wait for
request.timeout.ms. Knows no request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context

from pybroker.client.errors import ClientError
from pybroker.client.network.connection import Connection


class CoordinatorWatch:
    """One group's coordinator, watched as long as something is asked of it."""

    def __init__(self, find: Callable[[], Awaitable[str]], interval_s: float) -> None:
        """`find` requests the coordinator's server from any broker; `interval_s` is the time between two checks."""
        self._find, self._interval_s = find, interval_s
        self._watched: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    def watch(self, connection: Connection) -> None:
        """Watch this connection to the coordinator, in place of another one."""
        if connection is self._watched and self._task is not None and not self._task.done():
            return
        self.stop()
        self._watched = connection
        # The retry budget of the call that is first to watch is not the watch's.
        self._task = asyncio.get_running_loop().create_task(self._run(connection), context=Context())

    def stop(self) -> None:
        """Watch nothing any more."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._watched = None

    async def _run(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        while connection.usable:
            await asyncio.sleep(self._interval_s)
            if not connection.is_silent(loop.time()):
                continue
            try:
                found = await self._find()
            except ClientError:
                continue
            if found != connection.server:
                connection.give_up(f"no answer, and {found} is the coordinator by now")
                return
