"""Retention: holding logs to the age and size that their topics allow (KIP-107 for the log start).

Owns what a topic's settings ask of its logs, and that files which are out of use are removed when their time has come.
Which segments go is arithmetic of the native log. Its methods block on the disk: they are called from worker threads,
never from the loop. Must not know where settings come from, nor who may ask.

Also where nothing may be deleted by age or size, segments wholly below the log start go: nobody can read them.
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
    """Runs blocking work on a worker thread, that many ms from now. It may be called from any thread."""

    def __call__(self, delay_ms: int, work: Callable[[], None], /) -> None:
        """Take the work; what has not begun when the broker stops is not done."""


class Limits(msgspec.Struct, frozen=True):
    """What a log is held to; None is no limit."""

    retention_ms: int | None
    retention_bytes: int | None


def limits_of(topic: TopicConfig) -> Limits:
    """Return what a topic's settings ask of its logs: nothing without `delete` in the policy, whatever they say."""
    if "delete" not in topic.cleanup_policy:
        return Limits(None, None)
    return Limits(
        None if topic.retention_ms < 0 else topic.retention_ms,
        None if topic.retention_bytes < 0 else topic.retention_bytes,
    )


class Retention:
    """Deletes what logs need not keep. `settings_of` gives a topic's settings in force, None for one that goes."""

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
        """Look at every log once; one whose disk fails does not keep the others."""
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
        """Have every log forget the producers that were silent for too long."""
        for partition in self._partitions.all():
            if self._stopped:
                return
            forget_producers(partition, self._now_ms())

    def delete_records(self, partition: Partition, offset: int) -> int:
        """Move the log start to `offset`, which is at most the high watermark; the log start then. Raises OSError."""
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
    """Remove files that are out of use."""
    # What cannot be removed now is removed when its log is opened the next time. What is gone went with its topic.
    for file in files:
        try:
            os.unlink(file)
        except FileNotFoundError:
            continue
        except OSError as error:
            log.warning("%s cannot be removed: %s", file, error)
