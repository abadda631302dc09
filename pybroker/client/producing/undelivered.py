"""Reports undelivered records whose failure the program has not observed.

Owns the messages: the log message of each partition and cause, and the error of `flush` and `close`. The engine
counts the records of a blocking producer (`native/client/src/producer/failures.rs`); `UnobservedFutures` those of an
asyncio one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pybroker.client.errors import BrokerError, ClientError

if TYPE_CHECKING:
    import asyncio

    from pybroker.client.producing.record_metadata import RecordMetadata

Failure = tuple[Exception, str, int, int]
"""The error of the first record, topic, partition, and the number of records."""

_NAMED_AT_MOST = 10
_KEPT_AT_MOST = 10_000
"""Maximum number of failed futures that are kept; of more, only their count by partition."""
_log = logging.getLogger("pybroker.client")


class Undelivered:
    """The reports of one producer."""

    def __init__(self, mode: str) -> None:
        """`mode` is the setting `unobserved.failures`."""
        self._raises = mode == "raise"
        self._logged: set[tuple[str, int, object]] = set()

    def warn(self, failures: Sequence[Failure]) -> None:
        """Log each partition and cause, once until the next `report`."""
        for error, topic, partition, records in failures:
            cause = error.code if isinstance(error, BrokerError) else type(error)
            if (topic, partition, cause) not in self._logged:
                self._logged.add((topic, partition, cause))
                _log.warning("%s not delivered: %s", _describe([(error, topic, partition, records)]), error)

    def report(self, failures: Sequence[Failure]) -> None:
        """Raise or log the first failure, with the count of records and their partitions."""
        if not failures:
            return
        self.warn(failures)
        self._logged.clear()
        error = failures[0][0]
        text = f"{error}; {_describe(failures)} not delivered"
        if not self._raises:
            _log.warning("%s (unobserved.failures=log)", text)
            return
        error.args = (text, *error.args[1:])
        raise error


class UnobservedFutures:
    """The futures of an asyncio producer that have failed, until their exceptions are retrieved or reported."""

    def __init__(self) -> None:
        self._futures: list[tuple[asyncio.Future[RecordMetadata], Failure]] = []
        self._further: list[Failure] = []
        """Failures whose futures are not kept: by partition, the first error and the count."""

    def add(self, future: asyncio.Future[RecordMetadata], error: Exception, metadata: RecordMetadata) -> None:
        """Add a failed future."""
        self._futures.append((future, (error, metadata.topic, metadata.partition, 1)))

    def failures(self, *, take: bool) -> list[Failure]:
        """Return the failures that were not retrieved, by partition. With `take` they then count as retrieved."""
        # asyncio has no other indication. It logs a future that is garbage-collected while this is true.
        self._futures = [entry for entry in self._futures if entry[0]._log_traceback]
        found = _sums((*self._further, *(failure for _, failure in self._futures)))
        if take or len(self._futures) > _KEPT_AT_MOST:
            self._further = [] if take else found
            for future, _ in self._futures:
                future.exception()
            self._futures = []
        return found


def _sums(failures: Iterable[Failure]) -> list[Failure]:
    """Merge the failures of each partition: the first error, and the total count."""
    sums: dict[tuple[str, int], tuple[Exception, int]] = {}
    for error, topic, partition, records in failures:
        first, count = sums.get((topic, partition), (error, 0))
        sums[topic, partition] = first, count + records
    return [(error, topic, partition, records) for (topic, partition), (error, records) in sums.items()]


def _describe(failures: Sequence[Failure]) -> str:
    partitions = list(dict.fromkeys(f"{topic}-{partition}" for _, topic, partition, _ in failures))
    others = len(partitions) - _NAMED_AT_MOST
    named = ", ".join(partitions[:_NAMED_AT_MOST]) + (f" and {others} other partitions" if others > 0 else "")
    records = sum(records for *_, records in failures)
    return f"{records} records of {named} were" if records > 1 else f"1 record of {named} was"


def noted(error: BaseException, failure: ClientError) -> None:
    """Add the failure of a close as a note to the error that caused the close."""
    error.add_note(f"while the producer was closed: {failure}")
