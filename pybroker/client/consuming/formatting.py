"""A consumer's records as text: `poll` without objects, for `AsyncConsumer` and `Consumer`.

Owns no text: layouts are the engine's (`pybroker.client.text`). Positions follow as they follow `poll`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from pybroker.client import native
from pybroker.client.consuming.subscription_state import SubscriptionState


class Formatting(ABC):
    """The calls of an `AsyncConsumer` that hand records out as text."""

    _state: SubscriptionState

    async def format(
        self, layout: native.RecordFormat, timeout_s: float = 1.0, *, max_records: int, max_bytes: int
    ) -> native.FormattedRecords | None:
        """As `poll`, of one partition and as text (`pybroker.client.text`); None when the timeout is over.

        At most `max_records`, and no further one once the text has `max_bytes`.
        """
        made: native.FormattedRecords | None = await self._until(
            timeout_s, lambda: self._state.format(layout, max_records, max_bytes)
        )
        return made

    def format_here(
        self, layout: native.RecordFormat, *, max_records: int, max_bytes: int
    ) -> native.FormattedRecords | None:
        """As `format`, of what has arrived, for a caller as `poll_here` has it."""
        if not self._is_free():
            return None
        self._say_alive()
        return self._state.format(layout, max_records, max_bytes)

    @abstractmethod
    async def _until(self, timeout_s: float, take: Callable[[], Any]) -> Any:
        """Do what is due until something can be taken; None when the timeout is over."""

    @abstractmethod
    def _is_free(self) -> bool:
        """Whether nothing but records waits to be read."""

    @abstractmethod
    def _say_alive(self) -> None:
        """Let the group know that the program polls."""
