"""Damages to the metadata log of a stopped voter."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.support.batches import read_batches

METADATA_LOG = "__cluster_metadata-0"

Damage = Callable[[Path, Path], None]
"""Damages the log of a data directory. The second argument is an older copy of its metadata log."""


def cut_ten_bytes(data: Path, _older: Path) -> None:
    """Truncate the last batch, as an incomplete write does."""
    segment = _last_segment(data)
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 10)


def cut_batches(data: Path, _older: Path, count: int = 3) -> None:
    """Remove the last `count` batches of the log."""
    segment = _last_segment(data)
    lost = read_batches(segment.read_bytes())[-count:]
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - sum(len(batch.raw) for batch in lost))


def restore_older_copy(data: Path, older: Path) -> None:
    """Replace all files of the log, including the vote, by an older copy."""
    shutil.rmtree(data / METADATA_LOG)
    shutil.copytree(older, data / METADATA_LOG)


DAMAGES: dict[str, Damage] = {
    "ten bytes": cut_ten_bytes,
    "batches": cut_batches,
    "an older copy": restore_older_copy,
}


def _last_segment(data: Path) -> Path:
    return max((data / METADATA_LOG).glob("*.log"))
