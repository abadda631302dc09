"""`pybroker log-cleaner`: shows how dirty compacted logs are, and what their last pass did.

Owns options and output. It reads the files of log directories without a broker, so it works beside a running one and
after one that has stopped. Kafka has no such command.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.storage.compaction.dirtiness import Segment, bytes_of, first_dirty_offset
from pybroker.storage.compaction.last_passes import CLEANED, FILE_NAME, LastPass, read_last_passes
from pybroker.storage.errors import CorruptCheckpointError
from pybroker.storage.log_dirs.checkpoint import CLEANED_OFFSETS, read_checkpoint

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

DESCRIPTION = (
    "Print for each compacted log the clean bytes, the cleanable bytes (without the active segment) and the result of "
    "the last cleaning. Reads the log directories; the broker need not run."
)

_HEAD = (
    "TOPIC",
    "PARTITION",
    "STATE",
    "SEGMENTS",
    "CLEAN-BYTES",
    "DIRTY-BYTES",
    "ACTIVE-BYTES",
    "DIRTY-RATIO",
    "FIRST-DIRTY-OFFSET",
    "LAST-PASS",
    "TOOK-MS",
    "BYTES-BEFORE",
    "BYTES-AFTER",
    "RECORDS-BEFORE",
    "RECORDS-AFTER",
)


JSON = {
    "": [
        {
            "topic": "string",
            "partition": "integer",
            "state": "string",
            "segments": "integer",
            "cleanBytes": "integer",
            "dirtyBytes": "integer",
            "activeBytes": "integer",
            "dirtyRatio": "number",
            "firstDirtyOffset": "integer",
            "lastPassMs": "integer|null",
        }
    ]
}


class _Row(NamedTuple):
    topic: str
    partition: int
    segments: list[Segment]
    first_dirty: int
    last: LastPass

    def as_json(self) -> dict[str, object]:
        """Return the row for a JSON document."""
        active = self.segments[-1]
        found = bytes_of(self.segments, self.first_dirty, active.base_offset)
        return {
            "topic": self.topic,
            "partition": self.partition,
            "state": self.last.state,
            "segments": len(self.segments),
            "cleanBytes": found.clean,
            "dirtyBytes": found.cleanable,
            "activeBytes": active.size,
            "dirtyRatio": round(found.ratio, 4),
            "firstDirtyOffset": self.first_dirty,
            "lastPassMs": self.last.ended_ms or None,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the row as text, in the order of the headings."""
        active = self.segments[-1]
        found = bytes_of(self.segments, self.first_dirty, active.base_offset)
        figures = (
            *(self.last.state, len(self.segments), found.clean, found.cleanable, active.size),
            *(f"{found.ratio:.2f}", self.first_dirty),
        )
        passed: tuple[object, ...] = ("-",) * 6
        if self.last.ended_ms:
            ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.last.ended_ms / 1000))
            passed = (ended, *self.last[3:]) if self.last.state == CLEANED else (ended, *passed[1:])
        return tuple(map(str, (self.topic, self.partition, *figures, *passed)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--log-dirs", required=True, metavar="DIRS", help="log directories, separated by commas")
    parser.add_argument("--topic-list", metavar="TOPICS", help="only these topics, separated by commas")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the table and return 0."""
    topics = None if arguments.topic_list is None else set(arguments.topic_list.split(","))
    found: list[_Row] = []
    for directory in map(Path, arguments.log_dirs.split(",")):
        if not directory.is_dir():
            raise CommandError(f"--log-dirs {directory}: expected a directory")
        try:
            found += [row for row in _rows(directory) if topics is None or row.topic in topics]
        except (OSError, CorruptCheckpointError) as error:
            raise CommandError(str(error)) from None
    if arguments.json:
        print_json([row.as_json() for row in sorted(found, key=lambda row: (row.topic, row.partition))])
        return 0
    table = [_HEAD, *sorted(row.cells() for row in found)]
    widths = [max(len(row[column]) for row in table) for column in range(len(_HEAD))]
    for row in table:
        print(" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _rows(directory: Path) -> Iterator[_Row]:
    offsets = read_checkpoint(directory / CLEANED_OFFSETS)
    passes = read_last_passes(directory / FILE_NAME)
    for topic, index in offsets.keys() | passes.keys():
        segments = _segments(directory / f"{topic}-{index}")
        if segments:
            # No file contains the end of the log. The records of its active segment are dirty in any case.
            start, end = segments[0].base_offset, 2**63 - 1
            first_dirty = first_dirty_offset(offsets.get((topic, index)), start, end)
            yield _Row(topic, index, segments, first_dirty, passes.get((topic, index), LastPass()))


def _segments(directory: Path) -> list[Segment]:
    """Return the segments of a partition's directory; those that a running broker deletes meanwhile are omitted."""
    found = []
    for path in sorted(directory.glob("*.log")):
        try:
            found.append(Segment(int(path.stem), path.stat().st_size, -1))
        except (FileNotFoundError, ValueError):
            continue
    return found
