"""The newest epoch in the `leader-epoch-checkpoint` of the metadata log, for those that read it beside a closed log.

Owns that a damaged file counts as none: the next start makes it anew from the log. The file's form is the log's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

EPOCHS_NAME = "leader-epoch-checkpoint"
NO_EPOCH = (-1, -1)


def read_last_epoch(directory: Path) -> tuple[int, int]:
    """Return the newest epoch and its first offset; `NO_EPOCH` where no file is there, or none that is understood."""
    try:
        # Version, count, and an epoch with its first offset in each line.
        epoch, start_offset = map(int, (directory / EPOCHS_NAME).read_bytes().splitlines()[2:][-1].split())
    except (OSError, ValueError, IndexError):
        return NO_EPOCH
    return epoch, start_offset
