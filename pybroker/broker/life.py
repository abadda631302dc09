"""A broker's way from start to stop: the steps of a start, and the states that go with them.

Owns the state. Must not know what a step does: the node lays it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from pybroker.broker.broker_state import BROKER_LIFE, BrokerEvent, BrokerState

if TYPE_CHECKING:
    from pybroker.broker.shut_down import ShutDown

log = logging.getLogger("pybroker.broker")


class Run(Protocol):
    """One run of a broker, by the steps of its start in their order."""

    @property
    def shut_down(self) -> ShutDown:
        """How the parts end that have been built so far."""

    async def listen(self) -> None:
        """Lock directories and open listeners, on which nobody is answered yet."""

    async def join(self) -> None:
        """Become a part of the cluster."""

    async def serve(self) -> None:
        """Answer requests."""

    async def leave(self) -> None:
        """Hand over what other nodes can do."""


class Life:
    """The life of a broker, which may be started again after every end. Used from one event loop."""

    def __init__(self) -> None:
        self.state = BrokerState.NOT_RUNNING

    async def start(self, run: Run) -> None:
        """Take every step; when one raises, end what has begun and raise the same."""
        self._happen(BrokerEvent.START)
        try:
            await run.listen()
            self._happen(BrokerEvent.LISTEN)
            await run.join()
            await run.serve()
        except BaseException:
            self._happen(BrokerEvent.FAIL)
            await run.shut_down.run(clean=False)
            self._happen(BrokerEvent.END)
            raise
        self._happen(BrokerEvent.ANSWER)

    async def stop(self, run: Run) -> None:
        """Stop cleanly: what was acknowledged is on disk, and the next start needs no recovery."""
        self._happen(BrokerEvent.STOP)
        await run.leave()
        self._happen(BrokerEvent.LEAVE)
        await run.shut_down.run(clean=True)
        self._happen(BrokerEvent.END)

    def _happen(self, event: BrokerEvent) -> None:
        self.state = BROKER_LIFE.following(self.state, event)
        log.debug("broker state: %s", self.state.name)
