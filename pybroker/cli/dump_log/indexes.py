"""The lines of a segment's other files: both indexes and the aborted transactions.

Owns the formats of these files as far as they are printed, and the checks of an index against its log. Files are read
as they are, without any trust, and never opened as a log.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.dump_log.errors import DamagedFileError
from pybroker.cli.dump_log.native import LogWalk

if TYPE_CHECKING:
    from pathlib import Path

    from pybroker.cli.dump_log.findings import Findings
    from pybroker.cli.dump_log.native import FileBatch

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_ABORTED = struct.Struct(">hqqqq")
_NO_LIMIT = 2**63 - 1


class IndexOptions(NamedTuple):
    """The options for checks of an index."""

    only_sanity: bool
    only_verify: bool


def _base_offset(path: Path) -> int:
    text = path.name.split(".")[0]
    try:
        return int(text)
    except ValueError:
        raise DamagedFileError(f'For input string: "{text}"') from None


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name.split(".")[0] + suffix)


def _open_log(path: Path) -> LogWalk:
    try:
        return LogWalk.open(str(path), _NO_LIMIT)
    except FileNotFoundError:
        raise DamagedFileError(str(path.absolute())) from None


def _read(path: Path, entry: struct.Struct) -> bytes:
    """Read the complete entries of an index."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DamagedFileError("Invalid max index size: -1") from None
    return raw[: len(raw) // entry.size * entry.size]


def dump_offset_index(path: Path, options: IndexOptions, max_message_size: int, findings: Findings) -> None:
    """Print the entries of an offset index, and check that each has the position of its batch."""
    base = _base_offset(path)
    log = _open_log(_beside(path, ".log"))
    entries = [(base + relative, at) for relative, at in _OFFSET_ENTRY.iter_unpack(_read(path, _OFFSET_ENTRY))]
    if not entries:
        print(f"{path} is empty.")
        return
    if options.only_sanity:
        _check_offset_index(path, base, entries[-1][0])
        print(f"{path} passed sanity check.")
        return
    mismatches = findings.index_mismatches
    for number, (offset, position) in enumerate(entries):
        # A crash leaves zeros behind the last entry.
        if offset == base and number > 0:
            return
        _check_position(_beside(path, ".log"), log, position)
        try:
            found = log.last_offset_at(position, max_message_size)
        except ValueError as error:
            raise DamagedFileError(str(error)) from None
        if found is None:
            # In Java an iterator without elements, whose exception has no message.
            raise DamagedFileError("null")
        if found != offset:
            mismatches[str(path.absolute())][offset] = found
        if not options.only_verify:
            print(f"offset: {offset} position: {position}")


def _check_offset_index(path: Path, base: int, last: int) -> None:
    if last < base:
        raise DamagedFileError(
            f"Corrupt index found, index file {path.absolute()} has non-zero size but the last offset is {last} "
            f"which is less than the base offset {base}"
        )
    size = path.stat().st_size
    if size % _OFFSET_ENTRY.size:
        raise DamagedFileError(
            f"Index file {path.absolute()} is corrupt, found {size} bytes which is neither positive nor a multiple of "
            f"{_OFFSET_ENTRY.size}"
        )


def _check_position(path: Path, log: LogWalk, position: int) -> None:
    """Raise DamagedFileError for a position that Kafka's log reader would reject."""
    reader = f"FileRecords(size={log.end}, file={path}, start=0, end={2**31 - 1})"
    if position < 0:
        raise DamagedFileError(f"Invalid position: {position} in read from {reader}")
    if position > log.end:
        raise DamagedFileError(f"Slice from position {position} exceeds end position of {reader}")


def dump_time_index(path: Path, options: IndexOptions, findings: Findings) -> None:
    """Print the entries of a time index, and check each against its batch and the batch's largest timestamp."""
    base = _base_offset(path)
    log = _open_log(_beside(path, ".log"))
    offsets = _OFFSET_ENTRY.iter_unpack(_read(_beside(path, ".index"), _OFFSET_ENTRY))
    positions = [(base + relative, at) for relative, at in offsets]
    entries = [
        (timestamp, base + relative) for timestamp, relative in _TIME_ENTRY.iter_unpack(_read(path, _TIME_ENTRY))
    ]
    if options.only_sanity:
        _check_time_index(path, base, entries)
        print(f"{path} passed sanity check.")
        return
    before = -1
    for number, (timestamp, offset) in enumerate(entries):
        if offset == base and number > 0:
            return
        floor = bisect_right(positions, (offset, _NO_LIMIT)) - 1
        _check_time_entry(log, 0 if floor < 0 else positions[floor][1], timestamp, offset, before, path, findings)
        if not options.only_verify:
            print(f"timestamp: {timestamp} offset: {offset}")
        before = timestamp


def _check_time_entry(
    log: LogWalk, position: int, timestamp: int, offset: int, before: int, path: Path, findings: Findings
) -> None:
    name = str(path.absolute())
    _check_position(_beside(path, ".log"), log, position)
    try:
        batch = log.find(position, offset)
    except ValueError as error:
        raise DamagedFileError(str(error)) from None
    if batch is None:
        findings.offsets_not_found[name].append((offset, -1))
        return
    last_offset = _last_offset(batch)
    if last_offset != offset:
        findings.offsets_not_found[name].append((offset, last_offset))
        return
    largest = max(_timestamps(batch), default=-1)
    if largest != timestamp:
        findings.timestamp_mismatches[name].append((timestamp, largest))
    if before >= timestamp:
        findings.timestamp_disorder[name].append((timestamp, before))


def _last_offset(batch: FileBatch) -> int:
    header, message = batch.header(), batch.message()
    if header is not None:
        return header[1]
    return -1 if message is None else message[0]


def _timestamps(batch: FileBatch) -> list[int]:
    if batch.magic < 2:
        messages, failure = batch.messages()
        times = [message[1] for message in messages]
    else:
        records, failure = batch.records()
        times = [record[1] for record in records]
    if failure is not None:
        raise DamagedFileError(str(failure))
    return times


def _check_time_index(path: Path, base: int, entries: list[tuple[int, int]]) -> None:
    first_timestamp = entries[0][0] if entries else -1
    last_timestamp, last_offset = entries[-1] if entries else (-1, base)
    found = f"Corrupt time index found, time index file ({path.absolute()}) has non-zero size but the last"
    if last_timestamp < first_timestamp:
        raise DamagedFileError(
            f"{found} timestamp is {last_timestamp} which is less than the first timestamp {first_timestamp}"
        )
    if last_offset < base:
        raise DamagedFileError(f"{found} offset is {last_offset} which is less than the first offset {base}")
    size = path.stat().st_size
    if size % _TIME_ENTRY.size:
        raise DamagedFileError(
            f"Time index file {path.absolute()} is corrupt, found {size} bytes which is neither positive nor a multiple"
            f" of {_TIME_ENTRY.size}"
        )


def dump_transaction_index(path: Path) -> None:
    """Print the aborted transactions; a missing file has none."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return
    whole = len(raw) // _ABORTED.size * _ABORTED.size
    # As Kafka's tool, which prints its own version, whatever the file's is.
    for _, producer, first, last, stable in _ABORTED.iter_unpack(raw[:whole]):
        print(f"version: 0 producerId: {producer} firstOffset: {first} lastOffset: {last} lastStableOffset: {stable}")
