"""A consumer's records as text, for `AsyncConsumer` and `Consumer`: `poll` without an object for each record.

The engine formats the text (`pybroker.client.text`). Positions are updated as by `poll`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from pybroker.client import native
from pybroker.client.consuming.subscription_state import SubscriptionState


class Formatting(ABC):
    """The calls of an `AsyncConsumer` that return records as text."""

    _state: SubscriptionState

    async def format(
        self, layout: native.RecordFormat, timeout_s: float = 1.0, *, max_records: int, max_bytes: int
    ) -> native.FormattedRecords | None:
        """As `poll`, of one partition and as text (`pybroker.client.text`); None after the timeout.

        Returns at most `max_records`, and adds no record once the text has `max_bytes`.
        """
        made: native.FormattedRecords | None = await self._until(
            timeout_s, lambda: self._state.format(layout, max_records, max_bytes)
        )
        return made

    def format_here(
        self, layout: native.RecordFormat, *, max_records: int, max_bytes: int
    ) -> native.FormattedRecords | None:
        """As `format`, for records that have arrived, and for the same callers as `poll_here`."""
        if not self._is_free():
            return None
        self._report_alive()
        return self._state.format(layout, max_records, max_bytes)

    @abstractmethod
    async def _until(self, timeout_s: float, take: Callable[[], Any]) -> Any:
        """Do the work that is due until something can be taken; None after the timeout."""

    @abstractmethod
    def _is_free(self) -> bool:
        """Whether records can be returned without work of the loop's thread."""

    @abstractmethod
    def _report_alive(self) -> None:
        """Report to the driver that the program polls."""
