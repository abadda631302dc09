"""`AsyncBroker`: a test broker for code that runs in an event loop, which none of its methods blocks.

Runs blocking calls of `Broker` on a worker thread. The calls for faults, versions and recording are those of
`Broker`, since they do not block.

    async with AsyncBroker() as broker:
        broker.fail("Produce", "NOT_ENOUGH_REPLICAS")
        await broker.restart()
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from pybroker.testing.arguments import checked
from pybroker.testing.broker import Broker
from pybroker.testing.controls import Controls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from datetime import timedelta
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from pybroker.config.broker import BrokerConfig
    from pybroker.testing.faults import Fault
    from pybroker.testing.requests import Request

# The traceback of an invalid call ends at the line of the test.
__tracebackhide__ = True


class AsyncBroker(Controls):
    """One broker, which runs on a loop of its own."""

    @checked
    def __init__(
        self,
        *,
        directory: str | Path | None = None,
        properties: Mapping[str, str] | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        **settings: object,
    ) -> None:
        """Prepare a broker as `Broker` does. Raises ConfigError for an invalid setting."""
        self.broker = Broker(directory=directory, properties=properties, security=security, users=users, **settings)
        """The blocking broker, for threads."""
        super().__init__(self.broker._interceptor)

    @property
    def bootstrap_servers(self) -> str:
        """Return the address for clients; empty before the first start."""
        return self.broker.bootstrap_servers

    @checked
    def client_settings(self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """As `Broker.client_settings`."""
        return self.broker.client_settings(user, mechanism=mechanism)

    @checked
    def client_properties(self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """As `Broker.client_properties`."""
        return self.broker.client_properties(user, mechanism=mechanism)

    @property
    def config(self) -> BrokerConfig:
        """Return its settings."""
        return self.broker.config

    async def start(self) -> Self:
        """Start, and return when the broker is ready. Raises NodeError."""
        await asyncio.to_thread(self.broker.start)
        return self

    @checked
    async def stop(self, *, keep: bool = False) -> None:
        """Stop as `Broker.stop` does."""
        await asyncio.to_thread(self.broker.stop, keep=keep)

    async def restart(self) -> None:
        """Stop and start again, with the same data and address."""
        await asyncio.to_thread(self.broker.restart)

    @contextlib.asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        """Stop the broker for the block, then start it again with the same data and address."""
        await self.stop(keep=True)
        try:
            yield
        finally:
            await self.start()

    @contextlib.asynccontextmanager
    async def unreachable(self) -> AsyncIterator[None]:
        """Refuse connections during the block, and close open ones. The broker keeps running."""
        await asyncio.to_thread(self.broker.refuse_connections)
        try:
            yield
        finally:
            await asyncio.to_thread(self.broker.accept_connections)

    async def reset(self) -> None:
        """Reset the broker to its initial state, as `Broker.reset` does."""
        await asyncio.to_thread(self.broker.reset)

    @checked
    async def advance(self, by: timedelta | float) -> None:
        """Advance the broker's clock as `Broker.advance` does."""
        await asyncio.to_thread(self.broker.advance, by)

    @checked
    async def wait_for(
        self, api: str, count: int = 1, *, timeout: float = 10, where: Callable[[Request], bool] = lambda _: True
    ) -> list[Request]:
        """Wait for recorded requests, as `RequestLog.wait_for` does."""
        return await asyncio.to_thread(self.requests.wait_for, api, count, timeout=timeout, where=where)

    @checked
    async def wait(self, fault: Fault, times: int = 1, *, timeout: float = 10) -> None:
        """Wait until a fault has applied to requests, as `Fault.wait` does."""
        await asyncio.to_thread(fault.wait, times, timeout=timeout)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave_async(error)

    async def _leave_async(self, _error: BaseException | None) -> None:
        """Stop at the end of a block, except in a forked child."""
        await self.stop()

    def _versions_changed(self) -> None:
        self.broker._versions_changed()
