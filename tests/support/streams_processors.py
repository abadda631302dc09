"""The processors that a step of a topology names, and their stores. They equal those of `Processors.java`.

Their stores are key-value stores of text.
"""

from __future__ import annotations

from typing import Any

from pybroker.streams.operators.table_transform_values import ValueTransformer
from pybroker.streams.processor import FixedKeyProcessor, Processor, ProcessorContext, PunctuationType
from pybroker.streams.records import Record
from pybroker.streams.serdes import STRING
from pybroker.streams.state import builders
from tests.support.streams_functions import MAPPERS, first, text
from tests.support.streams_steps import Step

CLOCKS = {
    "collect_by_stream_time": PunctuationType.STREAM_TIME,
    "collect_by_wall_clock": PunctuationType.WALL_CLOCK_TIME,
}


def store_builder(given: Step) -> builders.StoreBuilder:
    """Return the builder of a store that the program adds itself."""
    name, retention, size = given["store"], given.get("retention", 1000), given.get("size", 100)
    match given["kind"]:
        case "key_value":
            builder = builders.key_value_store(name, STRING, STRING)
        case "timestamped_key_value":
            builder = builders.timestamped_key_value_store(name, STRING, STRING)
        case "versioned":
            builder = builders.versioned_key_value_store(name, retention, STRING, STRING)
        case "window":
            duplicates = given.get("duplicates", False)
            builder = builders.window_store(name, retention, size, STRING, STRING, duplicates)
        case "timestamped_window":
            builder = builders.timestamped_window_store(name, retention, size, STRING, STRING)
        case "session":
            builder = builders.session_store(name, retention, STRING, STRING)
        case kind:
            raise ValueError(f"unknown kind of store {kind!r}")
    return builder.with_caching(given.get("caching", False)).with_logging(given.get("logging", True))


class NamedSupplier:
    """Makes the processors of one step: `Processor`, `FixedKeyProcessor`, a value transformer, or a global one."""

    def __init__(self, step: Step, kind: str = "process") -> None:
        self._step = step
        self._kind = kind

    def __call__(self) -> Any:
        """Return a new processor."""
        return KINDS[self._kind](self._step)

    def stores(self) -> list[builders.StoreBuilder]:
        """Return the builders of the stores that the supplier adds itself."""
        return [store_builder(store) for store in self._step.get("own_stores", ())]


class _Stored:
    """A processor with at most one store, which may not exist."""

    context: ProcessorContext

    def __init__(self, step: Step) -> None:
        self._step = step

    def _store(self) -> Any:
        own = self._step.get("own_stores")
        return self.context.state_store(own[0]["store"] if own else self._step["stores"][0])

    def _append(self, key: Any, value: Any) -> Any:
        """Return the new value of a key in a store of strings: the previous value and this one."""
        if key is None:
            return "no key"
        store = self._store()
        appended = text(store.get(key)) + text(value)
        store.put(key, appended)
        return appended


def _with_added_header(record: Record[Any, Any]) -> Record[Any, Any]:
    headers = (*record.headers, ("added", text(record.value).encode()))
    return record.with_headers(headers).with_timestamp(record.timestamp + 5)


class NamedProcessor(_Stored, Processor[Any, Any]):
    """A processor that can change keys."""

    def init(self, context: ProcessorContext) -> None:
        """Schedule the punctuator of the step, if the step has one."""
        super().init(context)
        clock = CLOCKS.get(self._step["fn"])
        if clock is not None:
            context.schedule(self._step.get("interval", 100), clock, self._punctuate)

    def _punctuate(self, timestamp: int) -> None:
        for key, value in list(self._store().all()):
            self.context.forward(Record(key, value, timestamp))
            self._store().delete(key)

    def process(self, record: Record[Any, Any]) -> None:
        """Process one record as the step's function names."""
        context, value = self.context, record.value
        match self._step["fn"]:
            case "store_append":
                context.forward(record.with_value(self._append(record.key, value)))
            case "collect_by_stream_time" | "collect_by_wall_clock":
                self._append(record.key, value)
            case "add_header":
                context.forward(_with_added_header(record))
            case "forward_twice":
                context.forward(record)
                context.forward(record.with_key(first(value)).with_value(text(value) + "2"))
            case "drop_odd":
                if len(text(value)) % 2 == 0:
                    context.forward(record)
            case "position":
                at = context.record_metadata
                assert at is not None
                position = f"{at.topic}-{at.partition}@{at.offset}/{context.stream_time}"
                context.forward(record.with_value(position))
            case "to_child":
                context.forward(record, self._step["children"][len(text(value)) % 2])
            case name:
                raise ValueError(f"unknown processor {name!r}")


class NamedFixedKeyProcessor(_Stored, FixedKeyProcessor[Any, Any]):
    """A processor that keeps keys."""

    def process(self, record: Record[Any, Any]) -> None:
        """Process one record as the step's function names."""
        match self._step["fn"]:
            case "store_append":
                self.context.forward(record.with_value(self._append(record.key, record.value)))
            case "add_header":
                self.context.forward(_with_added_header(record))
            case "forward_twice":
                self.context.forward(record)
                self.context.forward(record.with_value(text(record.value) + "2"))
            case name:
                raise ValueError(f"unknown processor {name!r}")


class GlobalProcessor(_Stored, Processor[Any, Any]):
    """A processor that keeps a global store up to date."""

    def process(self, record: Record[Any, Any]) -> None:
        """Append the value of a record to the value of its key."""
        self._append(record.key, record.value)

    def _store(self) -> Any:
        return self.context.state_store(self._step["store"]["store"])


class NamedTransformer(ValueTransformer[Any, Any, Any]):
    """Computes the values of a table with a mapper."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def transform(self, key: Any, value: Any) -> Any:
        """Return the new value."""
        return MAPPERS[self._step["fn"]](key, value)


KINDS: dict[str, Any] = {
    "process": NamedProcessor,
    "process_values": NamedFixedKeyProcessor,
    "transform_values": NamedTransformer,
    "global_store": GlobalProcessor,
}
