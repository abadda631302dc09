"""The log cleaner: chooses the next log to compact, and stores the progress of each log (Kafka's `LogCleaner`).

Owns the choice, the threads, `cleaner-offset-checkpoint` and `cleaner-last-passes` of every log directory, and the set
of uncleanable logs. The native log does the compaction pass. A log is due when its dirty ratio exceeds its topic's
min.cleanable.dirty.ratio, or when max.compaction.lag.ms has passed; the filthiest log is first. Must not know where
settings come from.

All methods except `run` and `stop` block on the disk: they are called from the cleaner's own threads.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from pybroker.config.key import LONG_MAX
from pybroker.storage.compaction.dirtiness import (
    Bytes,
    CompactionPolicy,
    Segment,
    bytes_of,
    first_dirty_offset,
    first_uncleanable_offset,
    overdue_ms,
)
from pybroker.storage.compaction.last_passes import (
    CLEANED,
    FILE_NAME,
    UNCLEANABLE,
    LastPass,
    read_last_passes,
    write_last_passes,
)
from pybroker.storage.errors import CleaningEndedError, CorruptCheckpointError
from pybroker.storage.exhaustion import is_exhaustion
from pybroker.storage.log_dirs.checkpoint import CLEANED_OFFSETS, read_checkpoint, write_checkpoint
from pybroker.storage.native import LogCleaner, earliest_dirty_timestamp, roll_when_older, survey_segments
from pybroker.storage.retention import remove_files

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from pybroker.config.broker import BrokerConfig
    from pybroker.config.topic import TopicConfig
    from pybroker.storage.log_dirs.log_directory import LogDirectory
    from pybroker.storage.native import CleanedLog, Partition
    from pybroker.storage.partitions import Partitions
    from pybroker.storage.retention import Later

log = logging.getLogger("pybroker.storage.cleaner")

Key = tuple[str, int]

# A full disk is no damage: the pass is retried once there is free space.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# Kafka's limit for the memory of one thread, whose map has int indexes.
_LARGEST_MAP = 2**31 - 1
# Kafka accepts any rate. With a rate of 0 a pass never ends, which is the same here, with a warning in the log.
# With a negative rate Kafka's throttle never waits.
_STANDSTILL = 1024.0


class LogToClean(msgspec.Struct, frozen=True):
    """A compacted log, and the work of a pass over it."""

    partition: Partition
    directory: LogDirectory
    first_dirty: int
    first_uncleanable: int
    bytes: Bytes
    overdue_ms: int
    policy: CompactionPolicy

    @property
    def key(self) -> Key:
        """Topic and partition index."""
        return self.partition.topic, self.partition.index

    @property
    def is_due(self) -> bool:
        """Whether a pass is due now."""
        overdue = self.overdue_ms > 0 and self.bytes.cleanable > 0
        return overdue or self.bytes.ratio > self.policy.min_dirty_ratio


class CleanerCounts:
    """Statistics of a cleaner since the start, and the result of its last check. Safe to read from any thread."""

    def __init__(self) -> None:
        self.passes = 0
        self.took_ms = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.uncleanable = 0
        """Logs that cannot be cleaned."""
        self.max_dirty_ratio = 0.0
        """Dirty ratio of the filthiest log."""
        self.due = 0
        """Logs that are due for a pass."""
        self.due_bytes = 0
        """Cleanable bytes of the logs that are due."""
        self.checked_ms: int | None = None
        """Time of the last check, by the wall clock."""


class Cleaner:
    """Compacts logs, one pass at a time.

    `settings_of` returns a topic's configuration, None if it is being deleted; `config_of` returns the broker's.
    """

    def __init__(
        self,
        partitions: Partitions,
        settings_of: Callable[[str], TopicConfig | None],
        config_of: Callable[[], BrokerConfig],
        later: Later,
        now_ms: Callable[[], int],
        directory_failed: Callable[[Path, OSError], None],
        is_moving: Callable[[str, int], bool],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`directory_failed` is called, on a cleaner's thread, with a failed log directory.

        A log that `is_moving` to another directory is not compacted.
        """
        self._partitions = partitions
        self._settings_of = settings_of
        self._config_of = config_of
        self._later = later
        self._now_ms = now_ms
        self._directory_failed = directory_failed
        self._is_moving = is_moving
        self._sleep = sleep
        self._pace = _pace(config_of())
        self._native = LogCleaner(max_bytes_per_second=self._pace)
        self._warn_of_standstill()
        self._workers: ThreadPoolExecutor | None = None
        self._stopped = False
        self.counts = CleanerCounts()
        # Guards the fields below.
        self._lock = threading.Lock()
        self._in_work: set[Key] = set()
        # Invariant: each of these partitions is open, or the next check removes it.
        self._uncleanable: dict[Key, Partition] = {}
        # Contents of each directory's files; read once, before the first pass.
        self._offsets: dict[Path, dict[Key, int]] = {}
        self._passes: dict[Path, dict[Key, LastPass]] = {}
        # The topic ids of those offsets: a topic created again with the same name starts without a checkpoint.
        self._topic_ids: dict[Key, bytes] = {}

    async def run(self) -> None:
        """Compact logs forever, with log.cleaner.threads threads; a change of the setting applies at once."""
        running: set[asyncio.Task[None]] = set()
        self._workers = ThreadPoolExecutor(128, "pybroker-cleaner")
        try:
            while True:
                wanted = self._config_of().log_cleaner_threads
                while len(running) < wanted:
                    task = asyncio.ensure_future(self._run_thread(len(running)))
                    running.add(task)
                    task.add_done_callback(running.discard)
                await self._sleep(self._backoff_s())
        finally:
            for task in running:
                task.cancel()

    async def _run_thread(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        while number < self._config_of().log_cleaner_threads:
            cleaned = await loop.run_in_executor(self._workers, self.clean_filthiest)
            if not cleaned:
                await self._sleep(self._backoff_s())

    def _backoff_s(self) -> float:
        # Kafka accepts 0 and then never waits; a millisecond makes no difference.
        return max(1, self._config_of().log_cleaner_backoff_ms) / 1000

    def stop(self) -> None:
        """Cancel the passes in progress, and wait until they have ended; the logs are about to be closed."""
        self._stopped = True
        self._native.stop()
        if self._workers is not None:
            self._workers.shutdown()

    def move_back_checkpoints(self) -> None:
        """Reset cleaner checkpoints beyond the active segment: a log truncated there is not clean up to that offset.

        Called before anything is appended: new records would hide the truncation.
        """
        with self._lock:
            for directory, partitions in self._partitions.by_directory().items():
                if directory.offline:
                    continue
                offsets = self._offsets_of(directory)
                beyond = {
                    key: active
                    for partition in partitions
                    if (checkpoint := offsets.get(key := (partition.topic, partition.index))) is not None
                    and checkpoint > (active := survey_segments(partition)[-1][0])
                }
                for key, active in beyond.items():
                    log.info("%s-%d was truncated: its clean section now ends at offset %d", *key, active)
                if beyond:
                    offsets.update(beyond)
                    self._write(directory)

    def clean_filthiest(self) -> bool:
        """Compact the log that is the filthiest; returns whether there was one, and its first dirty offset advanced."""
        self._follow_pace()
        with self._lock:
            chosen = None if self._stopped else self._choose()
            if chosen is None:
                return False
            self._in_work.add(chosen.key)
        try:
            return self._clean(chosen)
        finally:
            with self._lock:
                self._in_work.discard(chosen.key)

    def survey(self) -> list[LogToClean]:
        """Return every compacted log with its dirtiness, in no order."""
        with self._lock:
            return list(self._survey())

    def _follow_pace(self) -> None:
        pace = _pace(self._config_of())
        if pace != self._pace:
            self._pace = pace
            self._native.set_pace(pace)
            self._warn_of_standstill()

    def _warn_of_standstill(self) -> None:
        if self._pace < _STANDSTILL:
            log.warning(
                "log.cleaner.io.max.bytes.per.second=%s: compaction nearly stops until this value is raised",
                self._pace,
            )

    def _choose(self) -> LogToClean | None:
        """Return the filthiest log that is due; rolls the active segment of each checked log if its time has come."""
        found = list(self._survey())
        self._forget_others({log_to_clean.key for log_to_clean in found})
        self.counts.uncleanable = len(self._uncleanable)
        self.counts.max_dirty_ratio = max((one.bytes.ratio for one in found), default=0.0)
        self.counts.checked_ms = self._now_ms()
        barred = self._in_work | self._uncleanable.keys()
        due = [one for one in found if one.is_due and one.key not in barred and not self._is_moving(*one.key)]
        self.counts.due, self.counts.due_bytes = len(due), sum(one.bytes.cleanable for one in due)
        return max(due, key=lambda one: one.bytes.ratio, default=None)

    def follow_move(self, key: Key, source: LogDirectory, target: LogDirectory) -> None:
        """Carry the cleaner state of a moved log over from `source` to `target`: the copy is equally clean."""
        with self._lock:
            checkpoint = self._offsets_of(source).pop(key, None)
            if checkpoint is not None:
                self._offsets_of(target)[key] = checkpoint
                self._passes[target.path][key] = self._passes[source.path].pop(key, LastPass())
            for directory in (target, source):
                if not directory.offline:
                    self._write(directory)

    def _survey(self) -> Iterator[LogToClean]:
        now_ms = self._now_ms()
        policies: dict[str, tuple[CompactionPolicy, int] | None] = {}
        for directory, partitions in self._partitions.by_directory().items():
            if directory.offline:
                continue
            for partition in partitions:
                if partition.topic not in policies:
                    settings = self._settings_of(partition.topic)
                    policies[partition.topic] = (
                        None if settings is None else (CompactionPolicy.of(settings), settings.segment_ms)
                    )
                policy = policies[partition.topic]
                if policy is None or not policy[0].compact:
                    continue
                try:
                    yield self._survey_one(directory, partition, *policy, now_ms)
                except (OSError, ValueError) as error:
                    log.error("The cleaner failed to check %s-%d: %s", partition.topic, partition.index, error)

    def _survey_one(
        self, directory: LogDirectory, partition: Partition, policy: CompactionPolicy, segment_ms: int, now_ms: int
    ) -> LogToClean:
        if roll_when_older(partition, min(segment_ms, policy.max_lag_ms), now_ms):
            partition.flush()
        segments = [Segment(*segment) for segment in survey_segments(partition)]
        first_dirty = self._first_dirty(directory, partition, policy)
        first_uncleanable = first_uncleanable_offset(
            segments, first_dirty, partition.last_stable_offset, policy, now_ms
        )
        # This opens files. Without a max.compaction.lag.ms nothing is overdue.
        oldest = earliest_dirty_timestamp(partition, first_dirty) if policy.max_lag_ms < LONG_MAX else None
        return LogToClean(
            partition,
            directory,
            first_dirty,
            first_uncleanable,
            bytes_of(segments, first_dirty, first_uncleanable),
            overdue_ms(oldest, policy, now_ms),
            policy,
        )

    def _first_dirty(self, directory: LogDirectory, partition: Partition, policy: CompactionPolicy) -> int:
        key = (partition.topic, partition.index)
        offsets = self._offsets_of(directory)
        if self._topic_ids.setdefault(key, partition.topic_id) != partition.topic_id:
            self._topic_ids[key] = partition.topic_id
            self._uncleanable.pop(key, None)
            offsets.pop(key, None)
        checkpoint = offsets.get(key)
        start, end = partition.log_start_offset, partition.log_end_offset
        first_dirty = first_dirty_offset(checkpoint, start, end)
        if checkpoint is not None and first_dirty != checkpoint:
            # Retention also advances the log start of a topic with the policy `delete`: no warning then.
            level = logging.DEBUG if policy.delete and checkpoint < start else logging.WARNING
            log.log(
                level,
                "%s-%d: the cleaner's checkpoint %d is outside the log (offsets %d to %d); the whole log is dirty",
                *(*key, checkpoint, start, end),
            )
            offsets[key] = first_dirty
        return first_dirty

    def _offsets_of(self, directory: LogDirectory) -> dict[Key, int]:
        offsets = self._offsets.get(directory.path)
        if offsets is None:
            # Both files only save work.
            checkpoint = directory.path / CLEANED_OFFSETS
            try:
                offsets = read_checkpoint(checkpoint)
            except CorruptCheckpointError as error:
                # Kafka creates an empty file, and writes it after the first compaction.
                if checkpoint.stat().st_size:
                    log.warning("%s; all compacted logs of this directory are dirty", error)
                offsets = {}
            try:
                passes = read_last_passes(directory.path / FILE_NAME)
            except CorruptCheckpointError as error:
                log.warning("%s; starting a new checkpoint", error)
                passes = {}
            self._offsets[directory.path], self._passes[directory.path] = offsets, passes
        return offsets

    def _forget_others(self, compacted: set[Key]) -> None:
        """Remove the state of logs that are deleted or no compacted topic's, also from the checkpoint files."""
        for key in self._uncleanable.keys() - compacted:
            del self._uncleanable[key]
        for key in self._topic_ids.keys() - compacted:
            del self._topic_ids[key]
        for directory, partitions in self._partitions.by_directory().items():
            path = directory.path
            if directory.offline or path not in self._offsets:
                continue
            here = {(partition.topic, partition.index) for partition in partitions} & compacted
            offsets, passes = self._offsets[path], self._passes[path]
            if offsets.keys() <= here and passes.keys() == here:
                continue
            self._offsets[path] = {key: offset for key, offset in offsets.items() if key in here}
            self._passes[path] = {key: passes.get(key, LastPass()) for key in here}
            self._write(directory)

    def _write(self, directory: LogDirectory) -> None:
        try:
            write_checkpoint(directory.path / CLEANED_OFFSETS, self._offsets[directory.path])
            write_last_passes(directory.path / FILE_NAME, self._passes[directory.path])
        except OSError as error:
            if is_exhaustion(error):  # the files are written again after the next pass, and only save work
                log.warning("%s: failed to write the cleaner's checkpoints: %s", directory.path, error)
            else:
                self._directory_failed(directory.path, error)

    def _clean(self, chosen: LogToClean) -> bool:
        topic, index = chosen.key
        try:
            cleaned = self._pass(chosen)
        except CleaningEndedError:
            return False
        except ValueError as error:
            log.warning("%s-%d cannot be compacted and is marked uncleanable: %s", topic, index, error)
            self._mark_uncleanable(chosen)
            return True
        except OSError as error:
            log.error("Failed to compact %s-%d: %s", topic, index, error)
            if error.errno not in _FULL and not is_exhaustion(error):
                self._directory_failed(chosen.directory.path, error)
            return False
        settings = self._settings_of(topic)
        if settings is not None and cleaned.files:
            files = cleaned.files
            self._later(settings.file_delete_delay_ms, lambda: remove_files(files))
        self._remember(chosen, cleaned)
        _log_cleaned(chosen, cleaned)
        # Otherwise it would be chosen again at once.
        return cleaned.end_offset > chosen.first_dirty

    def _pass(self, chosen: LogToClean) -> CleanedLog:
        config = self._config_of()
        threads = config.log_cleaner_threads
        return self._native.clean(
            chosen.partition,
            first_dirty=chosen.first_dirty,
            first_uncleanable=chosen.first_uncleanable,
            map_bytes=min(config.log_cleaner_dedupe_buffer_size // threads, _LARGEST_MAP),
            load_factor=config.log_cleaner_io_buffer_load_factor,
            buffer_bytes=config.log_cleaner_io_buffer_size // threads // 2,
            now_ms=self._now_ms(),
        )

    def _mark_uncleanable(self, chosen: LogToClean) -> None:
        with self._lock:
            self._uncleanable[chosen.key] = chosen.partition
            self.counts.uncleanable = len(self._uncleanable)
            last = LastPass(UNCLEANABLE, chosen.first_dirty, self._now_ms())
            self._passes[chosen.directory.path][chosen.key] = last
            self._write(chosen.directory)

    def _remember(self, chosen: LogToClean, cleaned: CleanedLog) -> None:
        with self._lock:
            counts, path = self.counts, chosen.directory.path
            counts.passes += 1
            counts.took_ms += cleaned.total_ms
            counts.bytes_read += cleaned.bytes_read
            counts.bytes_written += cleaned.bytes_written
            self._offsets[path][chosen.key] = cleaned.end_offset
            self._passes[path][chosen.key] = LastPass(
                CLEANED,
                cleaned.end_offset,
                self._now_ms(),
                cleaned.total_ms,
                cleaned.bytes_read,
                cleaned.bytes_written,
                cleaned.records_read,
                cleaned.records_written,
            )
            self._write(chosen.directory)


def _pace(config: BrokerConfig) -> float:
    pace = config.log_cleaner_io_max_bytes_per_second
    return math.inf if pace < 0 else pace


def _log_cleaned(chosen: LogToClean, cleaned: CleanedLog) -> None:
    topic, index = chosen.key
    log.info(
        "Compacted %s-%d, dirty from offset %d to %d, %d keys: from %d records (%d bytes) to %d (%d bytes), from %d "
        "segments to %d, in %d ms",
        *(topic, index, chosen.first_dirty, cleaned.end_offset, cleaned.keys),
        *(cleaned.records_read, cleaned.bytes_read, cleaned.records_written, cleaned.bytes_written),
        *(cleaned.segments_read, cleaned.segments_written, cleaned.total_ms),
    )
    if cleaned.records_without_key:
        log.warning("%s-%d: %d records without a key were removed", topic, index, cleaned.records_without_key)
