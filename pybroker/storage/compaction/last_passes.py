"""The file of a log directory that records the last compaction pass of each of its compacted logs.

    0                      the version
    1                      how many lines follow
    orders 0 cleaned 1042 1700000000000 210 5000000 1200000 48000 9100

The fields of a line: topic, partition, state, first dirty offset, end of the pass (ms since the epoch), its duration
(ms), bytes before and after, records before and after. A log without a pass has zeros. Kafka has no such file and
ignores it. Owns the format; the cleaner writes the file, `pybroker log-cleaner` reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.storage.errors import CorruptCheckpointError
from pybroker.storage.log_dirs.atomic_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE_NAME = "cleaner-last-passes"

WAITING, CLEANED, UNCLEANABLE = "waiting", "cleaned", "uncleanable"

_VERSION = "0"


class LastPass(NamedTuple):
    """The result of a log's last pass."""

    state: str = WAITING
    first_dirty: int = 0
    ended_ms: int = 0
    took_ms: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    records_before: int = 0
    records_after: int = 0


def read_last_passes(path: Path) -> dict[tuple[str, int], LastPass]:
    """Return the passes by (topic, partition), empty if there is no file; raises CorruptCheckpointError, OSError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise CorruptCheckpointError(path, 1, "text") from None
    if len(lines) < 2 or lines[0] != _VERSION or lines[1] != str(len(lines) - 2):
        raise CorruptCheckpointError(path, 1, f"version {_VERSION} and the number of the lines that follow")
    passes = {}
    for number, line in enumerate(lines[2:], start=3):
        try:
            topic, index, state, *figures = line.split()
            passes[topic, int(index)] = LastPass(state, *map(int, figures))
        except (ValueError, TypeError):
            raise CorruptCheckpointError(path, number, "topic, partition, state and seven numbers") from None
    return passes


def write_last_passes(path: Path, passes: Mapping[tuple[str, int], LastPass]) -> None:
    """Replace the file by these passes; raises OSError."""
    lines = [_VERSION, str(len(passes))]
    lines.extend(" ".join(map(str, (topic, index, *last))) for (topic, index), last in sorted(passes.items()))
    replace_file(path, "\n".join(lines) + "\n")
