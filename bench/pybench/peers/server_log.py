"""What a peer has said: the file in its directory that takes both its streams, and how much of it an error shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SERVER_LOG = "server.log"
TAIL_CHARACTERS = 3_000


def log_tail(directory: Path) -> str:
    """Return the end of what the node of a directory has logged, nothing where it has not begun to."""
    path = directory / SERVER_LOG
    return path.read_text(errors="replace")[-TAIL_CHARACTERS:] if path.exists() else ""
