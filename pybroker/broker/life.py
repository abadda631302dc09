"""The lifecycle of a broker: the steps of its start and stop, with their states.

Owns the state. Must not know the work of a step: `pybroker.node` does it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from pybroker.broker.broker_state import BROKER_LIFE, BrokerEvent, BrokerState

if TYPE_CHECKING:
    from pybroker.broker.shut_down import ShutDown

log = logging.getLogger("pybroker.broker")


class Run(Protocol):
    """The steps of one run of a broker, in their order."""

    @property
    def shut_down(self) -> ShutDown:
        """The shutdown steps of the parts built so far."""

    async def listen(self) -> None:
        """Lock directories and open listeners, without serving requests yet."""

    async def join(self) -> None:
        """Join the cluster."""

    async def serve(self) -> None:
        """Serve requests."""

    async def leave(self) -> None:
        """Move leadership to other nodes."""


class Life:
    """The lifecycle of a broker, which can be restarted after a stop. Used from one event loop."""

    def __init__(self) -> None:
        self.state = BrokerState.NOT_RUNNING

    async def start(self, run: Run) -> None:
        """Run all steps of the start. If one raises, shut down the started parts and raise the same exception."""
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
        self._happen(BrokerEvent.RESPONSE)

    async def stop(self, run: Run) -> None:
        """Stop cleanly: acknowledged records are on disk, and the next start needs no recovery."""
        self._happen(BrokerEvent.STOP)
        await run.leave()
        self._happen(BrokerEvent.LEAVE)
        await run.shut_down.run(clean=True)
        self._happen(BrokerEvent.END)

    def _happen(self, event: BrokerEvent) -> None:
        self.state = BROKER_LIFE.following(self.state, event)
        log.debug("broker state: %s", self.state.name)
