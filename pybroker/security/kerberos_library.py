"""The system's Kerberos, by the package `gssapi` (the extra `pybroker[gssapi]`): the common part of both sides.

Owns the import of that package, and the conversion of its exceptions to the caller's, in one line. Must not know
which side initiates, or SASL's messages. Calls may read files and query a KDC, so they must run on threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class LibraryContext:
    """One security context; the subclass of each side sets `_context`. Calls raise that side's error."""

    _context: Any

    def __init__(self, failure: type[Exception]) -> None:
        """`failure` is the exception type; also raised here where the library is not available."""
        self._failure = failure
        try:
            import gssapi  # of the extra `gssapi`, which may be missing
        except (ImportError, OSError) as error:
            raise failure(f"the package gssapi cannot be used: {in_one_line(error)}") from None
        self._gssapi: Any = gssapi

    @property
    def stands(self) -> bool:
        """Whether the context is established."""
        return bool(self._called(lambda: self._context.complete))

    def wrap(self, message: bytes) -> bytes:
        """Sign a message for the other side."""
        wrapped: bytes = self._called(lambda: self._context.wrap(message, False)).message
        return wrapped

    def unwrap(self, token: bytes) -> bytes:
        """Verify a message of the other side, and return its content."""
        message: bytes = self._called(lambda: self._context.unwrap(token)).message
        return message

    def _called(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._gssapi.exceptions.GSSError as error:
            raise self._failure(in_one_line(error)) from None


def in_one_line(error: Exception) -> str:
    """Return the library's message in one line."""
    return " ".join(str(error).split())
