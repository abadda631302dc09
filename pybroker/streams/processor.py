"""The Processor API (KIP-478): what a program implements to process records one by one with state.

The DSL's own operators implement the same classes. The runtime in `runtime/` implements the context.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar

from pybroker.streams.records import Record, RecordContext, RecordMetadata

K = TypeVar("K")
V = TypeVar("V")


class PunctuationType(Enum):
    """The clock that a punctuator follows."""

    STREAM_TIME = "stream_time"
    """The largest timestamp that the task has processed. It does not advance without new records."""
    WALL_CLOCK_TIME = "wall_clock_time"
    """The time of the machine, or of the test driver."""


class Cancellable(abc.ABC):
    """A scheduled punctuator."""

    @abc.abstractmethod
    def cancel(self) -> None:
        """Stop the punctuator. It is not called again."""


class ProcessorContext(abc.ABC):
    """The access of a processor to its task: it forwards records, opens stores and schedules punctuators.

    Every node of a task has a context of its own.
    """

    application_id: str
    task_id: str
    """Subtopology and partition, for example `0_3`."""

    @abc.abstractmethod
    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Send a record to all children of this node, or to the named child.

        Raises:
            StreamsError: this node has no child of that name.
        """

    @abc.abstractmethod
    def state_store(self, name: str) -> Any:
        """Return a state store that is connected to this node.

        Raises:
            StreamsError: no store of that name is connected to this node.
        """

    @abc.abstractmethod
    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback` with a timestamp in milliseconds, every `interval_ms` of the named clock.

        Raises:
            ValueError: the interval is less than one millisecond.
        """

    @property
    @abc.abstractmethod
    def record_context(self) -> RecordContext | None:
        """The context of the record that the task is processing; None outside of processing."""

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Where the current input record comes from; None in a punctuator and outside of processing."""
        context = self.record_context
        if context is None or context.topic is None:
            return None
        return RecordMetadata(context.topic, context.partition, context.offset)

    @property
    @abc.abstractmethod
    def stream_time(self) -> int:
        """The largest timestamp that this task has processed, in milliseconds; -1 before the first record."""

    @property
    @abc.abstractmethod
    def wall_clock_time(self) -> int:
        """The time of the machine or of the test driver, in milliseconds since the epoch."""

    @abc.abstractmethod
    def commit(self) -> None:
        """Request a commit after the current record."""

    @abc.abstractmethod
    def drop(self, reason: str) -> None:
        """Count and log a record that is skipped, with its topic, partition and offset."""


class Processor(Generic[K, V]):
    """One step of a topology. A class, or any callable that returns an object with these methods, is its supplier.

    `context` is valid from `init` on.
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Prepare the processor, before the first record. Overriding methods call this one."""
        self.context = context

    def process(self, record: Record[K, V]) -> None:
        """Process one record. Results are forwarded through the context."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what `init` has acquired. No record can be forwarded from here."""


class FixedKeyProcessor(Processor[K, V]):
    """A processor that keeps each record's key, so that no repartitioning follows (KIP-820).

    The runtime raises StreamsError if a forwarded record has another key than the processed record.
    """


ProcessorSupplier = Callable[[], Processor[Any, Any]]
"""Returns a new processor for each task. An attribute `stores()` returns builders of stores to add and to connect."""
