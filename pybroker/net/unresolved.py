"""Requests that the data plane cannot serve before the control plane has decided something about them.

Owns the two kinds: a request that names topics which the data plane lacks, or whose rights it does not know, and a
Produce of a transaction whose coordinator has to confirm it. Must not know who decides. Such a request may wait for
another broker or for the logs of a topic, so it does not count against `queued.max.requests`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from pybroker.net import verification
from pybroker.net.rights import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.machine.reply import Reply
    from pybroker.net.native import DataPlane, UnresolvedRequest
    from pybroker.net.verification import Answers, Asked

log = logging.getLogger("pybroker.net")


class UnresolvedRequests:
    """Decides about unresolved requests, and has the data plane serve them then. Used from one event loop."""

    def __init__(
        self,
        data_plane: DataPlane,
        decide: Callable[[UnresolvedRequest], Awaitable[Verdict]],
        ask_here: Callable[[Asked], Reply | None],
        ask_coordinator: Callable[[Asked], Awaitable[Answers]],
    ) -> None:
        """`decide` returns which of a request's topics are allowed. `ask_here` queries the transaction coordinator of
        this broker, and `ask_coordinator` the coordinator wherever it is.
        """
        self._data_plane = data_plane
        self._decide = decide
        self._ask_here, self._ask_coordinator = ask_here, ask_coordinator
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, event: UnresolvedRequest) -> None:
        """Begin to decide about a request."""
        if event.transaction is None:
            self._spawn(self._resolve(event))
        else:
            verification.begin(self._data_plane, event, self._ask_here, self._ask_coordinator, self._spawn)

    def stop(self) -> None:
        """Decide about nothing more."""
        for task in self._tasks:
            task.cancel()

    async def _resolve(self, event: UnresolvedRequest) -> None:
        verdict = Verdict([], 0)  # A failure allows nothing; without an authorizer the topics are answered as unknown.
        try:
            verdict = await self._decide(event)
        except Exception:
            log.exception("Failed to resolve a request for the topics %s", ", ".join(event.topics))
        finally:
            self._data_plane.retry(event.connection, event.request, *verdict)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
