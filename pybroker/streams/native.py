"""The gateway of `streams` to Rust: JSON as Arrow columns, and back."""

from __future__ import annotations

from pybroker._native import decode_json_columns, encode_json_columns

__all__ = ["decode_json_columns", "encode_json_columns"]
