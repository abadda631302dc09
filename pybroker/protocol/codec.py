"""From messages to bytes and back, by the table that Rust compiles a declaration to.

Owns the compiled schemas of the classes met so far, one per `Message` class, made at its first use. Knows no API by
name. The second step of a request's way in Python, and the one before last of its response's.
"""

from __future__ import annotations

from typing import TypeVar

from pybroker.protocol.schema import Message

T = TypeVar("T", bound=Message)


def encode(message: Message, version: int) -> bytes:
    """Encode `message` as `version` of its API writes it.

    Raises `UnsupportedVersion` when the version is not declared, or cannot carry a value that a field holds, and
    `UnencodableValue` when a value does not fit its wire type.
    """
    raise NotImplementedError


def decode(cls: type[T], buffer: bytes | memoryview, version: int, offset: int = 0) -> tuple[T, int]:
    """Decode a `cls` of `version` that starts at `offset`: (message, bytes read).

    Bytes after the message are left alone. Raises `MalformedMessage`, and `UnsupportedVersion` for a version that is
    not declared.
    """
    raise NotImplementedError
