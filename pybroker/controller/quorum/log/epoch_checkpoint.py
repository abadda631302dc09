"""The newest epoch in the metadata log's `leader-epoch-checkpoint`, readable while the log is closed.

Owns that a damaged file counts as none: the next start rebuilds it from the log. The log owns the file's format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

EPOCHS_NAME = "leader-epoch-checkpoint"
NO_EPOCH = (-1, -1)


def read_last_epoch(directory: Path) -> tuple[int, int]:
    """Return the newest epoch and its first offset; `NO_EPOCH` if the file is missing or damaged."""
    try:
        # Version, count, and an epoch with its first offset in each line.
        epoch, start_offset = map(int, (directory / EPOCHS_NAME).read_bytes().splitlines()[2:][-1].split())
    except (OSError, ValueError, IndexError):
        return NO_EPOCH
    return epoch, start_offset
