"""The metadata log and the vote on one voter's disk.

Owns `__cluster_metadata-0`: one record batch for each Raft entry, the batch's leader epoch being the entry's term; and
the order of writing: hard state, then entries, then one sync for all that was handed in together. Must not know what
records say, nor indexes of entries: a place in the log is an offset. Its methods block on the disk; those that write
are called by one thread.

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
_PATIENCE_S = 60.0  # so long a write waits for a descriptor or memory before the metadata log counts as failed
_AGAIN_S = 0.05
# Where the length of a batch and its leader epoch stand; the checksum covers neither offset nor epoch.
_LENGTH = slice(8, 12)
_EPOCH = slice(12, 16)
_HEAD = 12
_SHORTEST = 61

T = TypeVar("T")


class StoredBatch(msgspec.Struct, frozen=True):
    """A batch as the log holds it."""

    base_offset: int
    last_offset: int
    epoch: int
    is_control: bool
    values: tuple[bytes, ...]
    payload: bytes
    """Its bytes with base offset and leader epoch 0, as voters send it to each other."""


class Writing(NamedTuple):
    """What one step of the quorum asks the disk for, in the order of the fields."""

    number: int
    restart_at: int | None
    """The log is to be empty and to begin at this offset."""
    hard_state: HardState | None
    leader: int | None
    """Node id of the leader."""
    voters: Sequence[int]
    """Node ids of the voters."""
    cut_at: int | None
    """What the log holds from this offset on was overruled."""
    entries: Sequence[tuple[int, bytes]]
    """Term and batch of each."""
    messages: Sequence[tuple[int, bytes]]
    """For other voters, to be sent when this is persisted."""
    position: LogPosition | None = None
    """Where the log ends then; None while the voter waits for records that it had acknowledged and that are lost."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return self.restart_at is None and self.hard_state is None and not self.entries


class MetadataLog:
    """The files of one voter."""

    def __init__(self, settings: QuorumSettings, now_ms: Callable[[], int]) -> None:
        """Open or begin the log; raises `OSError`."""
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
        """Offset after the last record that was written."""
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
        """Return whole batches from the one with `offset` on, at least one; `ValueError` outside of the log."""
        return self._log.read(offset, max_bytes)

    def read_committed(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches from the one with `offset` on that end below `end_offset`: at least one, if there is.

        Raises `ValueError` where the log does not have the offset, and `OSError`.
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
        """Bytes of its segments."""
        return self._log.size_bytes

    def advance_start(self, offset: int) -> list[Path]:
        """Move the start forward; return the files that are out of use then. Raises `OSError`."""
        return self._log.advance_start(offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to this one that the log has, and where it ends; -1 and -1 for none."""
        return self._log.end_offset_for_epoch(epoch)

    def restart_at(self, offset: int) -> None:
        """Make the log an empty one that begins at `offset`; raises `OSError`."""
        self._log.restart_at(offset, self._now_ms())

    def write(self, writings: Sequence[Writing]) -> None:
        """Persist, in their order, what several steps ask for; raises `OSError`: the log is not to be used then."""
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
        """Do what changes nothing when it lacks a descriptor or memory, again and again until it finds one."""
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
