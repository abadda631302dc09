"""Windows of time: those that a program defines, and those that keys of results carry.

Sizes, gaps, grace and advances are milliseconds or `timedelta`. Windows of `TimeWindow` contain their start and not
their end. Windows of sessions and sliding windows contain both (`org.apache.kafka.streams.kstream`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

K = TypeVar("K")

MAX_TIMESTAMP = (1 << 63) - 1
"""The largest timestamp of Kafka, in milliseconds (`Long.MAX_VALUE`)."""
DEPRECATED_GRACE_MS = 24 * 60 * 60 * 1000
"""The grace of windows made by the deprecated `of`, in milliseconds: one day."""

Duration = int | timedelta
"""Milliseconds, or a `timedelta`."""


def milliseconds(name: str, duration: Duration, least: int = 0) -> int:
    """Return a duration in milliseconds.

    Raises:
        ValueError: the duration is smaller than `least` milliseconds.
    """
    value = duration // timedelta(milliseconds=1) if isinstance(duration, timedelta) else int(duration)
    if value < least:
        raise ValueError(f"invalid value {duration!r} for {name}: expected at least {least} milliseconds")
    return value


class Window(msgspec.Struct, frozen=True, order=True):
    """A range of time, `start` to `end`, in milliseconds."""

    start: int
    end: int

    def overlaps(self, other: Window) -> bool:
        """Return whether the two windows share an instant. Only windows of one kind can be compared."""
        raise NotImplementedError


class TimeWindow(Window, frozen=True):
    """A window that contains its start and not its end."""

    def overlaps(self, other: Window) -> bool:
        """Return whether the two windows share an instant."""
        return self.start < other.end and other.start < self.end


class SessionWindow(Window, frozen=True):
    """The window of a session, from its first to its last record, both included."""

    def overlaps(self, other: Window) -> bool:
        """Return whether the two sessions share an instant."""
        return not (other.end < self.start or self.end < other.start)


class UnlimitedWindow(Window, frozen=True):
    """A window without an end."""

    def overlaps(self, other: Window) -> bool:  # noqa: ARG002 - all of them overlap
        """Two unlimited windows always overlap."""
        return True


class Windowed(msgspec.Struct, Generic[K], frozen=True):
    """A key, and the window that a result of this key belongs to."""

    key: K
    window: Window

    def __str__(self) -> str:
        """Return what Kafka prints, for example `[user@60000/120000]`."""
        return f"[{self.key}@{self.window.start}/{self.window.end}]"


class TimeWindows(msgspec.Struct, frozen=True):
    """Tumbling windows (advance equal to size) or hopping windows (advance smaller than size)."""

    size_ms: int
    advance_ms: int
    grace_ms: int

    @classmethod
    def of_size_with_no_grace(cls, size: Duration) -> TimeWindows:
        """Return tumbling windows that close at their end."""
        return cls.of_size_and_grace(size, 0)

    @classmethod
    def of_size_and_grace(cls, size: Duration, grace: Duration) -> TimeWindows:
        """Return tumbling windows that accept records up to `grace` after their end."""
        size_ms = milliseconds("size", size, 1)
        return cls(size_ms, size_ms, milliseconds("grace", grace))

    def advance_by(self, advance: Duration) -> TimeWindows:
        """Return hopping windows: a window starts every `advance`.

        Raises:
            ValueError: the advance is not between 1 ms and the size.
        """
        advance_ms = milliseconds("advance", advance, 1)
        if advance_ms > self.size_ms:
            raise ValueError(f"invalid advance {advance!r}: expected at most the size of the window, {self.size_ms} ms")
        return TimeWindows(self.size_ms, advance_ms, self.grace_ms)

    def windows_for(self, timestamp: int) -> dict[int, Window]:
        """Return the windows that contain a timestamp, by start, in ascending order."""
        start = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        return {
            at: TimeWindow(at, min(at + self.size_ms, MAX_TIMESTAMP))
            for at in range(start, timestamp + 1, self.advance_ms)
        }


class UnlimitedWindows(msgspec.Struct, frozen=True):
    """One window from `start_ms` without an end. Records before the start are skipped."""

    start_ms: int = 0
    size_ms: ClassVar[int] = MAX_TIMESTAMP
    grace_ms: ClassVar[int] = 0

    @classmethod
    def of(cls) -> UnlimitedWindows:
        """Return the window that starts at the epoch."""
        return cls(0)

    def start_on(self, start: int) -> UnlimitedWindows:
        """Return the window that starts at `start`, in milliseconds since the epoch."""
        return UnlimitedWindows(milliseconds("start", start))

    def windows_for(self, timestamp: int) -> dict[int, Window]:
        """Return the window, if the timestamp is not before its start."""
        if timestamp < self.start_ms:
            return {}
        return {self.start_ms: UnlimitedWindow(self.start_ms, MAX_TIMESTAMP)}


class SlidingWindows(msgspec.Struct, frozen=True):
    """Windows that contain records whose timestamps differ by at most `time_difference_ms` (KIP-450)."""

    time_difference_ms: int
    grace_ms: int

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> SlidingWindows:
        """Return sliding windows that close at their end."""
        return cls.of_time_difference_and_grace(difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> SlidingWindows:
        """Return sliding windows that accept records up to `grace` after their end."""
        return cls(milliseconds("time difference", difference), milliseconds("grace", grace))


class SessionWindows(msgspec.Struct, frozen=True):
    """Sessions of a key: records that follow each other by at most `gap_ms`."""

    gap_ms: int
    grace_ms: int

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: Duration) -> SessionWindows:
        """Return sessions that close when the gap has passed."""
        return cls.of_inactivity_gap_and_grace(gap, 0)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: Duration, grace: Duration) -> SessionWindows:
        """Return sessions that accept records up to `grace` after the gap has passed."""
        return cls(milliseconds("inactivity gap", gap, 1), milliseconds("grace", grace))


class JoinWindows(msgspec.Struct, frozen=True):
    """The condition on time of a join of two streams: `left - before <= right <= left + after`, in milliseconds."""

    before_ms: int
    after_ms: int
    grace_ms: int

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: Duration) -> JoinWindows:
        """Return a window of `difference` before and after."""
        return cls.of_time_difference_and_grace(difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, difference: Duration, grace: Duration) -> JoinWindows:
        """Return a window of `difference` before and after, that accepts records up to `grace` late."""
        difference_ms = milliseconds("time difference", difference)
        return cls(difference_ms, difference_ms, milliseconds("grace", grace))

    def before(self, difference: Duration) -> JoinWindows:
        """Return this window with another time difference before. It can be negative: at least `-after`."""
        return self._checked(_signed(difference), self.after_ms)

    def after(self, difference: Duration) -> JoinWindows:
        """Return this window with another time difference after. It can be negative: at least `-before`."""
        return self._checked(self.before_ms, _signed(difference))

    @property
    def size_ms(self) -> int:
        """The length of the window, in milliseconds."""
        return self.before_ms + self.after_ms

    def _checked(self, before_ms: int, after_ms: int) -> JoinWindows:
        if before_ms + after_ms < 0:
            raise ValueError(
                f"invalid window from {before_ms} ms before to {after_ms} ms after: expected a start that is not "
                "after the end"
            )
        return JoinWindows(before_ms, after_ms, self.grace_ms)


def _signed(difference: Duration) -> int:
    """Return a duration in milliseconds, which can be negative."""
    return difference // timedelta(milliseconds=1) if isinstance(difference, timedelta) else int(difference)


AnyWindows = TimeWindows | UnlimitedWindows
"""Windows whose limits do not depend on the records."""


class EmitStrategy(msgspec.Struct, frozen=True):
    """When a windowed aggregation forwards results (KIP-825)."""

    on_window_close: bool

    ON_WINDOW_UPDATE: ClassVar[Any]
    """Forward a result on every update of a window."""
    ON_WINDOW_CLOSE: ClassVar[Any]
    """Forward one result, when the window closes."""


EmitStrategy.ON_WINDOW_UPDATE = EmitStrategy(False)
EmitStrategy.ON_WINDOW_CLOSE = EmitStrategy(True)
