"""A consumer's records as Arrow columns, for `AsyncConsumer`: `poll` without an object for each record.

The engine builds the columns. Positions follow the returned rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pybroker.client.consuming.columns import MAX_BYTES, MAX_ROWS, picked
from pybroker.client.consuming.record_columns import COLUMNS, RecordColumns
from pybroker.client.consuming.subscription_state import SubscriptionState


class ColumnReading(ABC):
    """The calls of an `AsyncConsumer` that return records as columns."""

    _state: SubscriptionState

    async def take_columns(
        self, timeout_s: float = 1.0, *, columns: Sequence[str] = COLUMNS, max_rows: int = MAX_ROWS
    ) -> RecordColumns | None:
        """As `poll`, of one partition and as Arrow columns (see `ColumnFetcher.take`); None after the timeout.

        Commits cover the returned rows, as with `poll`. Deserializers are not called. Raises ClientError while
        `poll` or iteration has records of a response ready.
        """
        names = picked(columns, max_rows)
        taken: RecordColumns | None = await self._until(
            timeout_s, lambda: self._state.take_columns(names, max_rows, MAX_BYTES)
        )
        return taken

    @abstractmethod
    async def _until(self, timeout_s: float, take: Callable[[], Any]) -> Any:
        """Do the work that is due until something can be taken; None after the timeout."""
