"""The context of the operators of the DSL: the context of programs, and internals of the runtime."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any, cast

from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import RecordContext


class OperatorContext(ProcessorContext):
    """The context of a node of the DSL (`InternalProcessorContext`). The runtime implements it."""

    node_name: str
    """The name of the node in the topology, for example `KTABLE-SUPPRESS-0000000003`."""
    emit_interval_ms: int
    """The least time between two emissions of final results, in milliseconds of the wall clock."""

    @abc.abstractmethod
    def set_record_context(self, context: RecordContext | None) -> None:
        """Replace the context of the record that the task is processing."""

    @abc.abstractmethod
    def processor_metadata(self, key: str) -> int | None:
        """Return a number that a processor of this task has stored with a commit, or None."""

    @abc.abstractmethod
    def set_processor_metadata(self, key: str, value: int) -> None:
        """Store a number that the next commit writes with the offsets of the task."""


class OperatorProcessor(Processor[Any, Any]):
    """The base class of the processors of operators."""

    context: OperatorContext

    def init(self, context: ProcessorContext) -> None:
        """Keep the context."""
        self.context = cast(OperatorContext, context)

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the fields that a runner must keep if it starts the task again for each batch of records.

        Each field is an object and the name of its attribute, which is an int. A runner sets them after `init`.
        """
        return ()
