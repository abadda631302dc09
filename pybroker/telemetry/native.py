"""Gateway to the extension module."""

from __future__ import annotations

from pybroker._native import crc32c, decompress

__all__ = ["crc32c", "decompress"]
