"""The kernels in Rust: the gateway to those of the broker."""

from __future__ import annotations

from pybroker._native import (
    build_batch,
    crc32c,
    decode_varints,
    encode_varints,
    search_index,
    validate_batch,
    zigzag,
)

__all__ = [
    "build_batch",
    "crc32c",
    "decode_varints",
    "encode_varints",
    "search_index",
    "validate_batch",
    "zigzag",
]
