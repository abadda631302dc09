"""The gateway to Rust: the only module of this package that imports the extension."""

from __future__ import annotations

from pybroker._native import RecordTable

__all__ = ["RecordTable"]
