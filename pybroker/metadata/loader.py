"""From committed records to a published image.

Owns `image`, the only mutable reference to the newest image, and the list of publishers. Owns the transactions of a
log that Kafka has written (KIP-866): their records count together at their end, or not at all. Must not know where
records come from. Runs on the loop thread only, so that between two awaits of a handler the image stands still.

A publisher that fails is logged and counted, as in Kafka, and keeps neither the others from the image nor the node from
the next one: what is wrong in one record would end every node, and again at every start.
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
# By class name, so that the modules of records that no broker of ours writes are not imported.
_OF_TRANSACTIONS = frozenset({_BEGIN, _END, _ABORT})


class Loader:
    """Turns batches of committed records into images and calls the publishers."""

    def __init__(self, publishers: Iterable[Publisher] = ()) -> None:
        self._publishers = list(publishers)
        self.image = EMPTY_IMAGE
        """The newest published image; nobody else assigns it. Read for every request."""
        self.failures = 0
        """How many times a publisher could not put an image in force."""
        # Invariant: None exactly when `image` shows every record that was loaded.
        self._pending: MetadataDelta | None = None
        # Records of a transaction that has not ended, None outside of one.
        self._transaction: list[Message] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Whether the records loaded last are of a transaction whose end has not come."""
        return self._transaction is not None

    def load(self, records: Iterable[Message], offset: int, epoch: int) -> None:
        """Take the committed records of one batch, the last of which has `offset` in leader epoch `epoch`.

        Nothing is seen of them until `publish`. Raises `RecordError`.
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
        """Take the level of kraft.version, which control records say; seen from `publish` on, as records are."""
        if self._pending is None:
            if level == self.image.features.kraft_version:
                return
            self._pending = MetadataDelta(self.image)
        self._pending.note_kraft_version(level)

    def replace(self, image: MetadataImage) -> None:
        """Take the image of a snapshot for all that was loaded here before.

        Nothing is seen of it until `publish`; publishers learn only what is not as it was.
        """
        self._pending = MetadataDelta(self.image)
        self._pending.become(image)
        self._transaction = None

    def stop(self) -> None:
        """Call no publisher any more; the image stays."""
        self._publishers.clear()

    def peek(self) -> MetadataImage:
        """Return the image that `publish` would make visible."""
        return self.image if self._pending is None else self._pending.build()

    def publish(self) -> MetadataImage:
        """Make the loaded records visible, call the publishers if there are any, and return the newest image."""
        delta = self._pending
        if delta is not None:
            self._pending = None
            self.image = delta.build()
            for publisher in self._publishers:
                try:
                    publisher.publish(delta, self.image)
                except Exception:
                    self.failures += 1
                    words = "the metadata up to offset %d cannot be put in force by %s"
                    log.critical(words, self.image.offset, type(publisher).__name__, exc_info=True)
        return self.image

    def _step_transaction(self, delta: MetadataDelta, kind: str) -> None:
        """Begin a transaction, or end it; raises `RecordError`."""
        records = self._transaction
        if (kind == _BEGIN) != (records is None):
            state = "outside of one" if records is None else "inside of one"
            raise RecordError(f"{kind}: a transaction of the metadata log cannot begin or end so {state}")
        self._transaction = [] if records is None else None
        if kind == _END and records is not None:
            for record in records:
                delta.apply(record)
