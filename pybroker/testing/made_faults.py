"""The faults that a test has created, for the pytest plugin, which warns of those that never applied.

Owns the list of one test. Imports no broker modules: pytest loads it in every project.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class MadeFault(Protocol):
    """The part of a `Fault` that is read at the end of a test."""

    @property
    def never_happened(self) -> bool:
        """Whether it has applied to no request, and the test has not read that."""


_made: list[tuple[MadeFault, str, int]] | None = None
"""Each fault with the file and the line that created it; None: faults are not recorded."""


def note(fault: MadeFault) -> None:
    """Record a fault, if a test is being watched. Called where the fault is created, from any thread."""
    if _made is not None:
        _made.append((fault, *_caller()))


def begin() -> None:
    """Start to record the faults of a test."""
    global _made
    _made = []


def end() -> list[tuple[MadeFault, str, int]]:
    """Stop recording, and return the recorded faults."""
    global _made
    made, _made = _made, None
    return made or []


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Record no faults in the block: those of a fixture that outlives the test may apply later."""
    global _made
    made, _made = _made, None
    try:
        yield
    finally:
        _made = made


def _caller() -> tuple[str, int]:
    """Return the current line outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pybroker.testing."):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
