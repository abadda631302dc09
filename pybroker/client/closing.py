"""Base classes of clients: a `with` block closes the client at its end, also after an exception."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from pybroker.client.forking import register

if TYPE_CHECKING:
    from types import TracebackType


class Closing(ABC):
    """At the end of `with ... as client:` the client is closed. A forked child cannot use the client."""

    __slots__ = ()

    def __new__(cls, *_arguments: Any, **_named: Any) -> Self:
        """Create the client, and register it as a client of this process."""
        self = super().__new__(cls)
        register(self)
        return self

    @abstractmethod
    def close(self) -> None:
        """Close every connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(error)

    def _leave(self, _error: BaseException | None) -> None:
        """Close the client at the end of a block. `_error` is the exception that ends the block, or None."""
        self.close()


class AsyncClosing(ABC):
    """At the end of `async with ... as client:` the client is closed. A forked child cannot use the client."""

    __slots__ = ()

    def __new__(cls, *_arguments: Any, **_named: Any) -> Self:
        """Create the client, and register it as a client of this process."""
        self = super().__new__(cls)
        register(self)
        return self

    @abstractmethod
    async def close(self) -> None:
        """Close every connection."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave_async(error)

    async def _leave_async(self, _error: BaseException | None) -> None:
        """Close the client at the end of a block. `_error` is the exception that ends the block, or None."""
        await self.close()
