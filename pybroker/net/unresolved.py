"""Requests that the data plane cannot serve before a decision of the control plane.

Owns the two kinds: requests for topics that the data plane does not know, or without a cached authorization, and
transactional Produce requests that the coordinator must verify. Must not make the decisions. Such a request may wait
for another broker or for the logs of a topic, so it does not count against `queued.max.requests`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from pybroker.net import verification
from pybroker.net.rights import Authorization

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.machine.reply import Reply
    from pybroker.net.native import DataPlane, UnresolvedRequest
    from pybroker.net.verification import Requested, VerificationResults

log = logging.getLogger("pybroker.net")


class UnresolvedRequests:
    """Gets decisions about unresolved requests, after which the data plane serves them. Used from one event loop."""

    def __init__(
        self,
        data_plane: DataPlane,
        decide: Callable[[UnresolvedRequest], Awaitable[Authorization]],
        query_here: Callable[[Requested], Reply | None],
        query_coordinator: Callable[[Requested], Awaitable[VerificationResults]],
    ) -> None:
        """`decide` returns which of a request's topics are allowed.

        `query_here` queries the transaction coordinator of this broker, and `query_coordinator` the coordinator on any
        broker.
        """
        self._data_plane = data_plane
        self._decide = decide
        self._query_here, self._query_coordinator = query_here, query_coordinator
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, event: UnresolvedRequest) -> None:
        """Start the decision about a request."""
        if event.transaction is None:
            self._spawn(self._resolve(event))
        else:
            verification.begin(self._data_plane, event, self._query_here, self._query_coordinator, self._spawn)

    def stop(self) -> None:
        """Cancel all decisions."""
        for task in self._tasks:
            task.cancel()

    async def _resolve(self, event: UnresolvedRequest) -> None:
        decision = Authorization([], 0)  # A failure denies everything. Without an authorizer, topics are unknown.
        try:
            decision = await self._decide(event)
        except Exception:
            log.exception("Failed to resolve a request for the topics %s", ", ".join(event.topics))
        finally:
            self._data_plane.retry(event.connection, event.request, *decision)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
