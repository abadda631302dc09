"""Kafka's checkpoint files: an offset by partition, as text.

    0                      the version
    2                      how many lines follow
    orders 0 1042          topic, partition, offset
    orders 1 977

Owns the format of the files and their names. Must not know the meaning of the offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.storage.errors import CorruptCheckpointError
from pybroker.storage.log_dirs.atomic_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"

_VERSION = "0"
_LARGEST_OFFSET = 2**63 - 1
_MOST_DIGITS = len(str(_LARGEST_OFFSET))


def read_checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """Return the offsets by (topic, partition), empty if there is no file; raises CorruptCheckpointError, OSError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise CorruptCheckpointError(path, 1, "text") from None
    if not lines or lines[0].strip() != _VERSION:
        raise CorruptCheckpointError(path, 1, f"version {_VERSION}")
    if len(lines) < 2 or not _is_number(lines[1].strip()) or len(lines) - 2 != int(lines[1]):
        raise CorruptCheckpointError(path, 2, "the number of the lines that follow")
    offsets = {}
    for number, line in enumerate(lines[2:], start=3):
        parts = line.split()
        if len(parts) != 3 or not _is_number(parts[1]) or not _is_number(parts[2].removeprefix("-")):
            raise CorruptCheckpointError(path, number, "topic, partition and offset")
        offsets[parts[0], int(parts[1])] = int(parts[2])
    return offsets


def _is_number(text: str) -> bool:
    """Return whether the text is a valid offset."""
    # The length is checked first, because Python refuses to parse a number of thousands of digits.
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) <= _LARGEST_OFFSET


def write_checkpoint(path: Path, offsets: Mapping[tuple[str, int], int]) -> None:
    """Replace the file by these offsets; raises OSError."""
    lines = [_VERSION, str(len(offsets))]
    lines.extend(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    replace_file(path, "\n".join(lines) + "\n")
