"""The faults that a test has made, for the pytest plugin, which warns of those that never happened.

Owns the list of one test. Imports nothing of the broker: pytest loads it in every project.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class MadeFault(Protocol):
    """What is read of a `Fault` at the end of a test."""

    @property
    def never_happened(self) -> bool:
        """Whether it has happened to no request, and the test has not looked."""


_made: list[tuple[MadeFault, str, int]] | None = None
"""Each fault with the file and the line that made it; None: none are noted."""


def note(fault: MadeFault) -> None:
    """Note a fault, if a test is being watched. Called where the fault is made, from any thread."""
    if _made is not None:
        _made.append((fault, *_caller()))


def begin() -> None:
    """Watch a test from now on."""
    global _made
    _made = []


def end() -> list[tuple[MadeFault, str, int]]:
    """End watching, and return what was made meanwhile."""
    global _made
    made, _made = _made, None
    return made or []


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Note no faults in the block: those of a fixture that outlives the test may happen later."""
    global _made
    made, _made = _made, None
    try:
        yield
    finally:
        _made = made


def _caller() -> tuple[str, int]:
    """Return the line outside of this package that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pybroker.testing."):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
