"""TransactionsState: the transactional ids of one partition, with an undo journal.

Owns every change of them, and the further input of decisions. Decides nothing. Must not know records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pybroker.coordinator.transaction.states import TransactionState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.coordinator.transaction.metadata import TransactionMetadata
    from pybroker.coordinator.transaction.settings import TransactionSettings


class TransactionContext:
    """The current settings that the machines of all partitions read."""

    __slots__ = ("settings", "version")

    def __init__(self, settings: TransactionSettings, version: int = 0) -> None:
        """`version` is the finalized level of the feature `transaction.version`."""
        self.settings = settings
        self.version = version


class TransactionView(Protocol):
    """The input of decisions. A function that takes a view must not change it; changes are records."""

    @property
    def context(self) -> TransactionContext:
        """The settings, and the level of `transaction.version`."""

    @property
    def transactions(self) -> Mapping[str, TransactionMetadata]:
        """All transactional ids of the partition."""

    @property
    def ongoing(self) -> Mapping[str, TransactionMetadata]:
        """Those of them with an open transaction."""


class TransactionsState:
    """A `TransactionView` that can be changed. Its values are immutable: a change replaces one."""

    __slots__ = ("_journal", "context", "ongoing", "transactions")

    def __init__(self, context: TransactionContext) -> None:
        self.context = context
        self.transactions: dict[str, TransactionMetadata] = {}
        self.ongoing: dict[str, TransactionMetadata] = {}
        # (transactional id, previous value or None), the oldest first; None while changes are not recorded.
        self._journal: list[tuple[str, TransactionMetadata | None]] | None = None

    def put(self, transactional_id: str, metadata: TransactionMetadata | None) -> None:
        """Replace the metadata of a transactional id; None deletes it."""
        if self._journal is not None:
            self._journal.append((transactional_id, self.transactions.get(transactional_id)))
        if metadata is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = metadata
        if metadata is not None and metadata.state is TransactionState.ONGOING:
            self.ongoing[transactional_id] = metadata
        else:
            self.ongoing.pop(transactional_id, None)

    def begin(self) -> None:
        """Start recording changes."""
        self._journal = []

    def commit(self) -> None:
        """Keep the changes since `begin`."""
        self._journal = None

    def undo(self) -> None:
        """Undo the changes since `begin`."""
        journal, self._journal = self._journal, None
        for transactional_id, before in reversed(journal or ()):
            self.put(transactional_id, before)
