"""Detects a coordinator that does not respond while another broker coordinates the group.

A paused or partitioned broker keeps its connections open and sends no response; after a while the cluster moves its
groups to another broker. Owns the FindCoordinator queries during a request, so that the request does not wait for
request.timeout.ms. Must not know the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context

from pybroker.client.errors import ClientError
from pybroker.client.network.connection import Connection


class CoordinatorWatch:
    """Watches one group's coordinator while a request to it is in flight."""

    def __init__(self, find: Callable[[], Awaitable[str]], interval_s: float) -> None:
        """`find` returns the coordinator's address from any broker; `interval_s` is the time between two checks."""
        self._find, self._interval_s = find, interval_s
        self._watched: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    def watch(self, connection: Connection) -> None:
        """Watch this connection to the coordinator, instead of the previous one."""
        if connection is self._watched and self._task is not None and not self._task.done():
            return
        self.stop()
        self._watched = connection
        # The retry budget of the first call must not limit the watch.
        self._task = asyncio.get_running_loop().create_task(self._run(connection), context=Context())

    def stop(self) -> None:
        """Stop watching."""
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
                connection.give_up(f"no response, and {found} is now the coordinator")
                return
