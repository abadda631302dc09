"""Retention: deletes segments beyond the age and size that their topics allow (KIP-107 for the log start).

Owns the limits that a topic's configuration sets, and the delayed removal of deleted files. The native log computes
which segments are deleted. Its methods block on the disk: they are called from worker threads, never from the loop.
Must not know the source of the configuration, nor which clients are authorized.

Segments wholly below the log start offset are deleted without any limit too: no client can read them.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Protocol

import msgspec

from pybroker.storage.native import advance_log_start, delete_old_segments, forget_producers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pybroker.config.topic import TopicConfig
    from pybroker.storage.native import Partition, RemovedSegments
    from pybroker.storage.partitions import Partitions

log = logging.getLogger("pybroker.storage")


class Later(Protocol):
    """Runs blocking work on a worker thread after a delay in ms. May be called from any thread."""

    def __call__(self, delay_ms: int, work: Callable[[], None], /) -> None:
        """Schedule the work; work that has not begun when the broker stops is dropped."""


class Limits(msgspec.Struct, frozen=True):
    """The limits of a log; None is no limit."""

    retention_ms: int | None
    retention_bytes: int | None


def limits_of(topic: TopicConfig) -> Limits:
    """Return the limits of a topic's configuration: none without `delete` in the cleanup policy."""
    if "delete" not in topic.cleanup_policy:
        return Limits(None, None)
    return Limits(
        None if topic.retention_ms < 0 else topic.retention_ms,
        None if topic.retention_bytes < 0 else topic.retention_bytes,
    )


class Retention:
    """Deletes expired segments. `settings_of` returns a topic's configuration, None if it is being deleted."""

    def __init__(
        self,
        partitions: Partitions,
        settings_of: Callable[[str], TopicConfig | None],
        later: Later,
        now_ms: Callable[[], int],
    ) -> None:
        self._partitions = partitions
        self._settings_of = settings_of
        self._later = later
        self._now_ms = now_ms
        self._stopped = False

    def stop(self) -> None:
        """Stop the running check: the logs are about to be closed."""
        self._stopped = True

    def delete_old_segments(self) -> None:
        """Check every log once; if a disk fails, the check continues with the other logs."""
        for partition in self._partitions.all():
            settings = self._settings_of(partition.topic)
            if self._stopped or settings is None:
                continue
            limits = limits_of(settings)
            try:
                removed = delete_old_segments(
                    partition,
                    retention_ms=limits.retention_ms,
                    retention_bytes=limits.retention_bytes,
                    now_ms=self._now_ms(),
                )
            except OSError as error:
                log.error("segments of %s-%d cannot be deleted: %s", partition.topic, partition.index, error)
                continue
            self._take_leave(partition, removed, settings)

    def forget_producers(self) -> None:
        """Expire the state of inactive producers in every log."""
        for partition in self._partitions.all():
            if self._stopped:
                return
            forget_producers(partition, self._now_ms())

    def delete_records(self, partition: Partition, offset: int) -> int:
        """Advance the log start to `offset`, at most the high watermark, and return the log start. Raises OSError."""
        removed = advance_log_start(partition, offset)
        settings = self._settings_of(partition.topic)
        if settings is not None:
            self._take_leave(partition, removed, settings)
        return removed.log_start_offset

    def _take_leave(self, partition: Partition, removed: RemovedSegments, settings: TopicConfig) -> None:
        if not removed.files:
            return
        log.info(
            "partition %s-%d: deleted %d segments below the log start, %d over retention.bytes=%d, %d older than "
            "retention.ms=%d, %d bytes in all; the log starts at offset %d",
            partition.topic,
            partition.index,
            removed.below_start,
            removed.over_size,
            settings.retention_bytes,
            removed.too_old,
            settings.retention_ms,
            removed.bytes,
            removed.log_start_offset,
        )
        files = removed.files
        self._later(settings.file_delete_delay_ms, lambda: remove_files(files))


def remove_files(files: Iterable[str]) -> None:
    """Remove deleted segments' files."""
    # A file that cannot be removed now is removed when its log is opened again. A missing file was deleted with its
    # topic.
    for file in files:
        try:
            os.unlink(file)
        except FileNotFoundError:
            continue
        except OSError as error:
            log.warning("%s cannot be removed: %s", file, error)
