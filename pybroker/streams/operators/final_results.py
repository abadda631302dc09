"""When an aggregation with `EmitStrategy.ON_WINDOW_CLOSE` forwards the results of closed windows (KIP-825)."""

from __future__ import annotations

from pybroker.streams.operators.context import OperatorContext
from pybroker.streams.records import NO_TIMESTAMP


class FinalResults:
    """The schedule of final results. It keeps the close time of the last emission, also over restarts of the task."""

    def __init__(self, context: OperatorContext, store_name: str) -> None:
        self._context = context
        self._store_name = store_name
        self._next_emission = 0
        restored = context.processor_metadata(store_name)
        self.last_close_time = NO_TIMESTAMP if restored is None else restored
        """The close time of the last emission, in milliseconds; -1 before the first."""

    def due(self, close_time: int) -> bool:
        """Return whether to emit now: after the emit interval, and only if the close time has advanced.

        The interval starts again at the current time, so that a jump of the clock does not cause many emissions.
        """
        now = self._context.wall_clock_time
        if now < self._next_emission:
            return False
        self._next_emission = now + self._context.emit_interval_ms
        return self.last_close_time == NO_TIMESTAMP or self.last_close_time < close_time

    def emitted(self, close_time: int) -> None:
        """Record an emission of all windows that end before the close time, in milliseconds."""
        self.last_close_time = close_time
        self._context.set_processor_metadata(self._store_name, close_time)
