"""The gateway to Rust: the only module of this package that imports the extension."""

from __future__ import annotations

from typing import TypeAlias

from pybroker._native import Schema

__all__ = ["FieldRow", "Schema"]

FieldRow: TypeAlias = (
    "tuple[str, str | int, bool, tuple[int, int], tuple[int, int], int, tuple[int, int], object, bool, bool]"
)
"""A field as an argument of `Schema`; the stub documents its elements."""
