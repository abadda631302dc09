"""A peer's log: the file in its directory with both its output streams, and the part of it that errors show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SERVER_LOG = "server.log"
TAIL_CHARACTERS = 3_000


def log_tail(directory: Path) -> str:
    """Return the end of the node's log in a directory, empty if there is none."""
    path = directory / SERVER_LOG
    return path.read_text(errors="replace")[-TAIL_CHARACTERS:] if path.exists() else ""
