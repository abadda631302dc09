"""What this package takes from the extension module."""

from __future__ import annotations

from pybroker._native import FileBatch, LogWalk, crc32c

__all__ = ["FileBatch", "LogWalk", "crc32c"]
