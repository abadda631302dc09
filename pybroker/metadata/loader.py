"""Builds images from committed records and publishes them.

Owns `image`, the only mutable reference to the newest image, and the list of publishers. Owns the metadata transactions
of a log written by Kafka (KIP-866): their records are applied together at the end, or never. Must not know the source
of records. Runs on the loop thread only, so the image does not change between two awaits of a handler.

A failed publisher is logged and counted, as in Kafka. The other publishers are still called, and the node continues:
otherwise one bad record would stop every node, at every start.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.errors import RecordError
from pybroker.metadata.image import EMPTY_IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.publishers import Publisher
    from pybroker.protocol.schema import Message

log = logging.getLogger("pybroker.metadata")

_BEGIN, _END, _ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"
# By class name, so that modules of record types that pybroker never writes are not imported.
_OF_TRANSACTIONS = frozenset({_BEGIN, _END, _ABORT})


class Loader:
    """Applies batches of committed records to images, and calls the publishers."""

    def __init__(self, publishers: Iterable[Publisher] = ()) -> None:
        self._publishers = list(publishers)
        self.image = EMPTY_IMAGE
        """The newest published image, assigned only by this class. Read for every request."""
        self.failures = 0
        """Number of failed calls of publishers."""
        # Invariant: None exactly when `image` has every loaded record.
        self._pending: MetadataDelta | None = None
        # Records of an open metadata transaction, None without one.
        self._transaction: list[Message] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Whether a metadata transaction is open."""
        return self._transaction is not None

    def load(self, records: Iterable[Message], offset: int, epoch: int) -> None:
        """Apply the committed records of one batch. `offset` and `epoch` are those of the last record.

        They are not visible before `publish`. Raises `RecordError`.
        """
        if self._pending is None:
            self._pending = MetadataDelta(self.image)
        for record in records:
            kind = type(record).__name__
            if kind in _OF_TRANSACTIONS:
                self._step_transaction(self._pending, kind)
            elif self._transaction is not None:
                self._transaction.append(record)
            else:
                self._pending.apply(record)
        self._pending.reach(offset, epoch)

    def note_kraft_version(self, level: int) -> None:
        """Set the level of kraft.version, from a control record. Not visible before `publish`."""
        if self._pending is None:
            if level == self.image.features.kraft_version:
                return
            self._pending = MetadataDelta(self.image)
        self._pending.note_kraft_version(level)

    def replace(self, image: MetadataImage) -> None:
        """Replace all loaded records by the image of a snapshot.

        It is not visible before `publish`. Publishers receive only the differences.
        """
        self._pending = MetadataDelta(self.image)
        self._pending.become(image)
        self._transaction = None

    def stop(self) -> None:
        """Remove the publishers; keep the image."""
        self._publishers.clear()

    def peek(self) -> MetadataImage:
        """Return the image that `publish` would publish."""
        return self.image if self._pending is None else self._pending.build()

    def publish(self) -> MetadataImage:
        """Publish the loaded records: replace the image, call the publishers, and return the image."""
        delta = self._pending
        if delta is not None:
            self._pending = None
            self.image = delta.build()
            for publisher in self._publishers:
                try:
                    publisher.publish(delta, self.image)
                except Exception:
                    self.failures += 1
                    words = "Failed to apply the metadata up to offset %d in %s"
                    log.critical(words, self.image.offset, type(publisher).__name__, exc_info=True)
        return self.image

    def _step_transaction(self, delta: MetadataDelta, kind: str) -> None:
        """Begin or end a metadata transaction. Raises `RecordError`."""
        records = self._transaction
        if (kind == _BEGIN) != (records is None):
            state = "outside of one" if records is None else "inside of one"
            raise RecordError(f"{kind}: a metadata transaction cannot begin or end {state}")
        self._transaction = [] if records is None else None
        if kind == _END and records is not None:
            for record in records:
                delta.apply(record)
