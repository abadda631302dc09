"""A broker's clock under control of a test: `advance` moves its time, `set_by_ms` changes its time of day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.machine.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.machine.clock import Cancellable


class SetClock(Clock):
    """Both clocks of a broker, and the waiters on them."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.set_by_ms = 0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def steady_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return self.now_ms + self.set_by_ms

    def call_later(self, delay_s: float, work: Callable[[], None]) -> Cancellable:
        entry = (self.now_ms + delay_s * 1000, work)
        self.due.append(entry)
        return _Entry(self.due, entry)

    def advance(self, delay_ms: int) -> None:
        self.now_ms += delay_ms
        for entry in [entry for entry in self.due if entry[0] <= self.now_ms]:
            self.due.remove(entry)
            entry[1]()


class _Entry:
    def __init__(self, due: list[Any], entry: Any) -> None:
        self._due, self._entry = due, entry

    def cancel(self) -> None:
        if self._entry in self._due:
            self._due.remove(self._entry)
