"""The system's Kerberos, by the package `gssapi` (the extra `pybroker[gssapi]`): what both sides of a context do alike.

Owns the import of that package, and that what it raises becomes the error of who uses it, in one line. Must not know
which side begins, nor SASL's messages. Calls may read files and ask a KDC: they are for threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class LibraryContext:
    """One security context, whose `_context` the side that opens it sets. Calls raise that side's error."""

    _context: Any

    def __init__(self, failure: type[Exception]) -> None:
        """`failure` is what is raised; also here, where the library cannot be had."""
        self._failure = failure
        try:
            import gssapi  # of the extra `gssapi`, which not everybody has
        except (ImportError, OSError) as error:
            raise failure(f"the package gssapi cannot be used: {in_one_line(error)}") from None
        self._gssapi: Any = gssapi

    @property
    def stands(self) -> bool:
        """Whether both sides know each other."""
        return bool(self._called(lambda: self._context.complete))

    def wrap(self, message: bytes) -> bytes:
        """Sign a message for the other side."""
        wrapped: bytes = self._called(lambda: self._context.wrap(message, False)).message
        return wrapped

    def unwrap(self, token: bytes) -> bytes:
        """Return what the other side has signed."""
        message: bytes = self._called(lambda: self._context.unwrap(token)).message
        return message

    def _called(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._gssapi.exceptions.GSSError as error:
            raise self._failure(in_one_line(error)) from None


def in_one_line(error: Exception) -> str:
    """Return what the library says."""
    return " ".join(str(error).split())
