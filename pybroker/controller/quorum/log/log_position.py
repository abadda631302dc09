"""The file `metadata-log-position`: the end of a voter's metadata log when the voter acknowledged its last entry.

Owns the file's format, and the rule that it is never ahead of the log and of the vote on the device. It is overwritten
without a sync after each write of the log. So it survives the end of the process, and may be behind after a power
failure. It is in the parent of the log's directory: if an older copy replaces the log, the file stays. Must not know
the consequences of a shorter log (ADR 0102).
"""

from __future__ import annotations

import logging
import os
import weakref
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from pybroker.storage.log_dirs.atomic_file import named

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("pybroker.controller")

POSITION_NAME = "metadata-log-position"
_BYTES = 96
"""Size of the single line, padded with spaces: each write replaces all of it."""
_LARGEST = 2**63 - 1


class LogPosition(NamedTuple):
    """The term of the vote, and the last acknowledged entry."""

    term: int = 0
    """The newest term in which this voter took part."""
    epoch: int = 0
    """Leader epoch of the entry."""
    raft_index: int = 0
    end_offset: int = 0
    """Offset after the entry's last record; 0 if no acknowledged entry is known."""


def read_position(directory: Path) -> LogPosition:
    """Return the content of the file in `directory`; raises `OSError`.

    All fields are zero if the file is missing or damaged.
    """
    path = directory / POSITION_NAME
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return LogPosition()
    position = _parse(raw)
    if position is None:
        log.warning("Replacing %s, which cannot be parsed: a loss of metadata records may remain undetected", path)
        return LogPosition()
    return position


def _parse(raw: bytes) -> LogPosition | None:
    text, _, checksum = raw.decode("ascii", "replace").strip().rpartition(" ")
    fields = text.split()
    if len(raw) > _BYTES or checksum != _checksum(text) or len(fields) != len(LogPosition._fields):
        return None
    if not all(map(str.isdecimal, fields)) or max(map(int, fields)) > _LARGEST:
        return None
    return LogPosition(*map(int, fields))


class PositionFile:
    """The file of one voter. Used by one thread at a time."""

    def __init__(self, directory: Path) -> None:
        """`directory` is the parent of the log's directory."""
        self._path = directory / POSITION_NAME
        self._descriptor: int | None = None
        self._is_clear = False

    def write(self, position: LogPosition) -> None:
        """Replace the content, without a sync; raises `OSError`."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._end = weakref.finalize(self, os.close, self._descriptor)
        text = " ".join(map(str, position))
        line = f"{text} {_checksum(text)}"
        try:
            os.pwrite(self._descriptor, f"{line:<{_BYTES - 1}}\n".encode(), 0)
        except OSError as error:
            raise named(error, self._path) from None
        self._is_clear = False

    def clear(self, term: int) -> None:
        """Reset the entry before the log is truncated, and wait for the sync; raises `OSError`."""
        if not self._is_clear:
            self.write(LogPosition(term))
            assert self._descriptor is not None
            os.fdatasync(self._descriptor)
            self._is_clear = True

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            self._descriptor = None
            self._end()


def _checksum(text: str) -> str:
    return f"{crc32(text.encode()):08x}"
