"""SIGINT and SIGTERM of commands that end in order.

Owns both handlers while it is entered, and the exit status of a process that a signal has ended. A signal raises
KeyboardInterrupt. During a call whose outcome must not be lost, the signal is delayed until its end.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE_S = 1.0
"""Seconds that a signal waits for a call."""


class Interrupts:
    """`with Interrupts() as interrupts:` in the main thread."""

    def __init__(self) -> None:
        self._came: int | None = None
        """The last signal."""
        self._is_held = self._is_ignored = False
        self._before: dict[int, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._handle) for number in _NUMBERS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def arrived(self) -> bool:
        """Whether a signal has arrived."""
        return self._came is not None

    @property
    def status(self) -> int:
        """Return the exit status: 130 after SIGINT and 143 after SIGTERM, as a JVM; 0 without a signal."""
        return 0 if self._came is None else 128 + self._came

    @contextmanager
    def held(self) -> Iterator[None]:
        """Only record signals during the block.

        A recorded signal raises KeyboardInterrupt where the block takes a second longer, and so does a second
        signal.
        """
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            if signal.SIGALRM in self._before:
                signal.setitimer(signal.ITIMER_REAL, 0)

    @contextmanager
    def ignored(self) -> Iterator[None]:
        """Only record signals during the block: for a few calls that must complete and do not wait."""
        self._is_ignored = True
        try:
            yield
        finally:
            self._is_ignored = False

    def _handle(self, number: int, _frame: object) -> None:
        is_first, self._came = self._came is None, number
        if self._is_ignored:
            return
        if not (is_first and self._is_held):
            raise KeyboardInterrupt
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._end_patience)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)

    def _end_patience(self, _number: int, _frame: object) -> None:
        if self._is_held:
            raise KeyboardInterrupt
