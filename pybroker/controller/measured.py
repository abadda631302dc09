"""A controller that notes how long its events and its commits take; built where somebody reads metrics.

Must not know who reads. Events of timers have nobody who waits for them, and only their commits are noted.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pybroker.controller.service import Controller
from pybroker.metrics.durations import Durations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.controller.cluster.machine import Event
    from pybroker.protocol.schema import Message


class MeasuredController(Controller):
    """See the module. Its methods are those of `Controller`."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Take what `Controller` takes."""
        super().__init__(*arguments, **keywords)
        self.event_times = Durations()
        """From when an event is handed in to when what it came to is committed and published."""
        self.commit_times = Durations()
        """From when a batch of records is proposed to when a majority of the voters has it and it is published."""

    async def submit(self, event: Event) -> Any:
        """As `Controller.submit`; what fails is noted, too."""
        began = perf_counter_ns()
        try:
            return await super().submit(event)
        finally:
            self.event_times.note(perf_counter_ns() - began)

    async def _append(self, records: Sequence[Message]) -> None:
        began = perf_counter_ns()
        await super()._append(records)
        self.commit_times.note(perf_counter_ns() - began)
