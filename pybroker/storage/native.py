"""The gateway of `storage` to Rust: the types of a log and its settings."""

from __future__ import annotations

from pybroker._native import LogConfig, Partition

__all__ = ["LogConfig", "Partition"]
