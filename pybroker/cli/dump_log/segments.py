"""The lines of a `.log` or `.checkpoint` file: one for each batch, one for each record.

Owns the format of these lines. Batches are read by the walk in Rust and written in groups, so that a file of a gigabyte
takes seconds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.dump_log.control_records import describe_control_record
from pybroker.cli.dump_log.errors import DamagedFileError
from pybroker.cli.dump_log.java_text import java_text
from pybroker.cli.dump_log.native import LogWalk

if TYPE_CHECKING:
    from pathlib import Path

    from pybroker.cli.dump_log.findings import Findings
    from pybroker.cli.dump_log.native import FileBatch

AT_ONCE = 4 << 20
"""Bytes of batches that are read from the walk at once."""

LARGEST_INT = 2**31 - 1
_BOOTSTRAP = "bootstrap.checkpoint"
_CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_CODEC, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40

Decode = Callable[[int, bytes | None, bytes | None], tuple[str | None, str | None]]
"""Converts a record (offset, key, value) to the text of key and value, None for no text."""


class SegmentOptions(NamedTuple):
    """The options for a file of batches."""

    is_deep: bool
    decode: Decode | None
    """None: keys and values are not printed."""
    skips_metadata: bool
    max_bytes: int


def dump_segment(path: Path, options: SegmentOptions, findings: Findings) -> None:
    """Print a file of batches. Raises `DamagedFileError` where Kafka's reader fails, after the lines before it."""
    print(_heading(path))
    walk = LogWalk.open(str(path), max(options.max_bytes, 0))
    dump = _Dump(path, options, findings)
    while True:
        batches, error = walk.batches(AT_ONCE, with_bytes=options.is_deep)
        try:
            for batch in batches:
                dump.show(batch)
        finally:
            dump.write()
        if error is not None:
            raise DamagedFileError(str(error))
        if not batches:
            break
    left = walk.end - dump.position
    if left > 0 and options.max_bytes == LARGEST_INT:
        print(f"Found {left} invalid bytes at the end of {path.name}")


def _heading(path: Path) -> str:
    if path.suffix == ".log":
        return f"Log starting offset: {_number(path.name.split('.')[0])}"
    if path.name == _BOOTSTRAP:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {_number(path.name[:20])}, epoch: {_number(path.name[21:31])}"


def _number(text: str) -> int:
    """Parse a base offset as Java does."""
    if re.fullmatch(r"[+-]?\d+", text) is None:
        raise DamagedFileError(f'For input string: "{text}"')
    return int(text)


class _Dump:
    """The output lines of one file."""

    def __init__(self, path: Path, options: SegmentOptions, findings: Findings) -> None:
        self._path = str(path.absolute())
        self._options = options
        self._findings = findings
        self._lines: list[str] = []
        self._last_offset = -1
        self.position = 0

    def write(self) -> None:
        """Write the collected lines."""
        sys.stdout.write("".join(self._lines))
        self._lines.clear()

    def show(self, batch: FileBatch) -> None:
        """Add the lines of a batch."""
        header = batch.header()
        if header is None:
            self._show_message(batch)
            return
        (base, last, count, sequence, last_sequence, producer, epoch, leader_epoch, attributes, first, latest, crc) = (
            header
        )
        kind = "LogAppendTime" if attributes & _LOG_APPEND_TIME else "CreateTime"
        codec = _CODECS.get(attributes & _CODEC)
        horizon = f"OptionalLong[{first}]" if attributes & _DELETE_HORIZON else "OptionalLong.empty"
        self._lines.append(
            f"baseOffset: {base} lastOffset: {last} count: {count} baseSequence: {sequence}"
            f" lastSequence: {last_sequence} producerId: {producer} producerEpoch: {epoch}"
            f" partitionLeaderEpoch: {leader_epoch}"
            f" isTransactional: {_java(attributes & _TRANSACTIONAL)} isControl: {_java(attributes & _CONTROL)}"
            f" deleteHorizonMs: {horizon}"
        )
        if codec is None:
            raise DamagedFileError(f"Unknown compression type id: {attributes & _CODEC}")
        self._lines.append(
            f" position: {batch.position} {kind}: {latest} size: {batch.size} magic: {batch.magic}"
            f" compresscodec: {codec} crc: {crc} isvalid: {_java(batch.is_valid)}\n"
        )
        if self._options.is_deep:
            self._show_records(batch, kind, is_control=bool(attributes & _CONTROL))
        self.position = batch.position + batch.size

    def _show_message(self, batch: FileBatch) -> None:
        """Add the lines of a message of format 0 or 1, and of its inner messages."""
        head = batch.message()
        if head is None:
            raise DamagedFileError("null")
        offset, attributes, timestamp, crc = head
        kind = "NoTimestampType"
        if batch.magic > 0:
            kind = "LogAppendTime" if attributes & _LOG_APPEND_TIME else "CreateTime"
        self._lines.append(f"offset: {offset}")
        codec = _CODECS.get(attributes & _CODEC)
        if codec is None:
            raise DamagedFileError(f"Unknown compression type id: {attributes & _CODEC}")
        self._lines.append(
            f" position: {batch.position} {kind}: {timestamp} size: {batch.size} magic: {batch.magic}"
            f" compresscodec: {codec} crc: {crc} isvalid: {_java(batch.is_valid)}\n"
        )
        if self._options.is_deep:
            messages, error = batch.messages()
            for at, time, stated, is_valid, key, value in messages:
                tail = f" isValid: {_java(is_valid)} crc: {stated}"
                self._show_record(at, f"{kind}: {time}", key, value, tail, self._options.decode)
            if error is not None:
                raise DamagedFileError(str(error))
        self.position = batch.position + batch.size

    def _show_records(self, batch: FileBatch, kind: str, *, is_control: bool) -> None:
        records, error = batch.records()
        decode = None if is_control else self._options.decode
        for offset, timestamp, sequence, key, value, headers in records:
            names = ",".join(map(java_text, headers))
            tail = f" sequence: {sequence} headerKeys: [{names}]"
            if is_control and not self._options.skips_metadata:
                tail += describe_control_record(key, value)
            self._show_record(offset, f"{kind}: {timestamp}", key, value, tail, decode)
        if error is not None:
            raise DamagedFileError(str(error))

    def _show_record(
        self, offset: int, time: str, key: bytes | None, value: bytes | None, tail: str, decode: Decode | None
    ) -> None:
        if offset != self._last_offset + 1:
            self._findings.gaps[self._path][self._last_offset] = offset
        self._last_offset = offset
        lines, prefix = self._lines, "| "
        if not self._options.skips_metadata:
            prefix = " "
            sizes = f"keySize: {-1 if key is None else len(key)} valueSize: {-1 if value is None else len(value)}"
            lines.append(f"| offset: {offset} {time} {sizes}{tail}")
        if decode is not None:
            shown_key, shown_value = decode(offset, key, value)
            if shown_key is not None:
                lines.append(f"{prefix}key: {shown_key}")
                prefix = " "
            if shown_value is not None:
                lines.append(f"{prefix}payload: {shown_value}")
        lines.append("\n")


def _java(flag: object) -> str:
    return "true" if flag else "false"
