"""The metadata log and the vote on one voter's disk.

Owns `__cluster_metadata-0`: one record batch for each Raft entry, whose leader epoch is the entry's term. Owns the
order of writes: hard state, then entries, then one sync for all writes of a call. Must not know the content of records,
nor indexes of entries: a position in the log is an offset. Its methods block on the disk; one thread calls the methods
that write.

After a crash the log ends with the last whole batch.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.hard_state import HardState, read_hard_state, write_hard_state
from pybroker.controller.quorum.log.log_position import LogPosition, PositionFile
from pybroker.controller.quorum.native import Log, parse_metadata_batches
from pybroker.storage.exhaustion import is_exhaustion, limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pybroker.controller.quorum.settings import QuorumSettings

log = logging.getLogger("pybroker.controller")

_READ_BYTES = 1 << 20
_INDEX_BYTES = 1 << 16
_INDEX_INTERVAL_BYTES = 4096
_PATIENCE_S = 60.0  # a write waits this long for a descriptor or memory before the metadata log counts as failed
_AGAIN_S = 0.05
# Positions of a batch's length and leader epoch; the checksum covers neither offset nor epoch.
_LENGTH = slice(8, 12)
_EPOCH = slice(12, 16)
_HEAD = 12
_SHORTEST = 61

T = TypeVar("T")


class StoredBatch(msgspec.Struct, frozen=True):
    """A batch of the log."""

    base_offset: int
    last_offset: int
    epoch: int
    is_control: bool
    values: tuple[bytes, ...]
    payload: bytes
    """The batch with base offset and leader epoch 0, as voters send it to each other."""


class Writing(NamedTuple):
    """The writes of one step of the quorum, in the order of the fields."""

    number: int
    restart_at: int | None
    """Empty the log and restart it at this offset, if not None."""
    hard_state: HardState | None
    leader: int | None
    """Node id of the leader."""
    voters: Sequence[int]
    """Node ids of the voters."""
    cut_at: int | None
    """Truncate the log to this offset: the following entries were overwritten by a new leader."""
    entries: Sequence[tuple[int, bytes]]
    """Term and batch of each entry."""
    messages: Sequence[tuple[int, bytes]]
    """Messages to other voters, to be sent after the writes are persisted."""
    position: LogPosition | None = None
    """The end of the log afterwards; None while the voter waits for records that it had acknowledged and lost."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return self.restart_at is None and self.hard_state is None and not self.entries


class MetadataLog:
    """The files of one voter."""

    def __init__(self, settings: QuorumSettings, now_ms: Callable[[], int]) -> None:
        """Open or create the log; raises `OSError`."""
        self.directory = settings.directory / DIRECTORY_NAME
        self._now_ms = now_ms
        self._log = Log.open(
            directory=str(self.directory),
            segment_bytes=settings.segment_bytes,
            segment_ms=settings.segment_ms,
            segment_index_bytes=_INDEX_BYTES,
            index_interval_bytes=_INDEX_INTERVAL_BYTES,
            now_ms=now_ms(),
        )
        self._positions = PositionFile(settings.directory)
        if self._log.truncated_bytes:
            log.warning("%s: truncated %d bytes of an incomplete write", self.directory, self._log.truncated_bytes)

    @property
    def start_offset(self) -> int:
        """Offset of the first record."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """Offset after the last written record."""
        return self._log.log_end_offset

    def hard_state(self) -> HardState | None:
        """Return the persisted vote; raises `OSError` and `QuorumStateError`."""
        return read_hard_state(self.directory)

    def scan(self) -> Iterator[StoredBatch]:
        """Read the whole log; raises `OSError` and `MetadataLogError`."""
        offset = self.start_offset
        while offset < self.end_offset:
            for batch in split(self._log.read(offset, _READ_BYTES)):
                if batch.base_offset != offset:
                    raise MetadataLogError(f"{self.directory}: offset {offset} is missing before {batch.base_offset}")
                yield batch
                offset = batch.last_offset + 1

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches, starting with the one that contains `offset`, at least one; `ValueError` outside."""
        return self._log.read(offset, max_bytes)

    def read_committed(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches below `end_offset`, starting with the one that contains `offset`: at least one, if any.

        Raises `ValueError` if the log does not contain the offset, and `OSError`.
        """
        if offset >= end_offset:
            return b""
        raw = self._log.read(offset, max_bytes)
        at = 0
        while at + _SHORTEST <= len(raw):
            size = _HEAD + int.from_bytes(raw[at + _LENGTH.start : at + _LENGTH.stop])
            last_offset = int.from_bytes(raw[at : at + 8]) + int.from_bytes(raw[at + 23 : at + 27])
            if at + size > len(raw) or last_offset >= end_offset:
                break
            at += size
        return raw[:at]

    @property
    def size_bytes(self) -> int:
        """Size of the segments in bytes."""
        return self._log.size_bytes

    def advance_start(self, offset: int) -> list[Path]:
        """Advance the log start; return the deleted segments' files. Raises `OSError`."""
        return self._log.advance_start(offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch of the log up to this one, and its end offset; -1 and -1 if there is none."""
        return self._log.end_offset_for_epoch(epoch)

    def restart_at(self, offset: int) -> None:
        """Empty the log and restart it at `offset`; raises `OSError`."""
        self._log.restart_at(offset, self._now_ms())

    def write(self, writings: Sequence[Writing]) -> None:
        """Persist the writes of several steps in order. Raises `OSError`; the log must not be used afterwards."""
        is_dirty, position = False, None
        for writing in writings:
            position = writing.position
            if position is not None and (writing.restart_at is not None or writing.cut_at is not None):
                self._patiently(partial(self._positions.clear, position.term))
            if writing.restart_at is not None:
                self._log.restart_at(writing.restart_at, self._now_ms())
                is_dirty = True
            if writing.hard_state is not None:
                write_hard_state(self.directory, writing.hard_state, writing.leader, writing.voters)
            if writing.cut_at is not None:
                self._log.truncate_to(writing.cut_at, self._now_ms())
            for term, batch in writing.entries:
                self._patiently(partial(self._log.append, batch, term, self._now_ms()))
                is_dirty = True
        if is_dirty:
            self._patiently(self._log.flush)
        if position is not None:
            self._patiently(partial(self._positions.write, position))

    def close(self) -> None:
        """Close the log; raises `OSError`."""
        self._positions.close()
        self._log.close()

    def _patiently(self, work: Callable[[], T]) -> T:
        """Retry work that lacks a descriptor or memory, until it succeeds. Such a failure must change nothing."""
        deadline = None
        while True:
            try:
                return work()
            except OSError as error:
                if not is_exhaustion(error):
                    raise
                if deadline is None:
                    deadline = time.monotonic() + _PATIENCE_S
                    log.error("The metadata log cannot be written now: %s; %s", error, limits())
                elif time.monotonic() > deadline:
                    raise
            time.sleep(_AGAIN_S)


def split(buffer: bytes) -> Iterator[StoredBatch]:
    """Return the whole batches at the front of `buffer`; raises `MetadataLogError`."""
    batches, _ = parse_metadata_batches(buffer)
    at = 0
    for base_offset, last_offset, epoch, _, is_control, values in batches:
        size = _HEAD + int.from_bytes(buffer[at + _LENGTH.start : at + _LENGTH.stop])
        raw = buffer[at : at + size]
        payload = bytes(_LENGTH.start) + raw[_LENGTH] + bytes(_EPOCH.stop - _EPOCH.start) + raw[_EPOCH.stop :]
        yield StoredBatch(base_offset, last_offset, epoch, is_control, values, payload)
        at += size
