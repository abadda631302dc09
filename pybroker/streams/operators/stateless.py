"""Operators of streams that keep no state: each record is processed alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.table import OperatorSupplier
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import Change, Record

Predicate = Callable[[Any, Any], bool]
Mapper = Callable[[Any, Any], Any]


class StreamFilter(OperatorSupplier):
    """Forward records for which `predicate(key, value)` is true, or false if `negate` is set (`KStreamFilter`)."""

    def __init__(self, predicate: Predicate, negate: bool) -> None:
        self.predicate = predicate
        self.negate = negate

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _Filter(self.predicate, self.negate)


class _Filter(Processor[Any, Any]):
    def __init__(self, predicate: Predicate, negate: bool) -> None:
        self._predicate = predicate
        self._negate = negate

    def process(self, record: Record[Any, Any]) -> None:
        if self._negate ^ bool(self._predicate(record.key, record.value)):
            self.context.forward(record)


class StreamMap(OperatorSupplier):
    """Forward the key and the value that `mapper(key, value)` returns (`KStreamMap`)."""

    def __init__(self, mapper: Mapper) -> None:
        self.mapper = mapper

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _Map(self.mapper)


class _Map(Processor[Any, Any]):
    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        key, value = _pair(self._mapper(record.key, record.value), "map")
        self.context.forward(Record(key, value, record.timestamp, record.headers))


class StreamMapValues(OperatorSupplier):
    """Forward the value that `mapper(key, value)` returns, under the same key (`KStreamMapValues`)."""

    def __init__(self, mapper: Mapper) -> None:
        self.mapper = mapper

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _MapValues(self.mapper)


class _MapValues(Processor[Any, Any]):
    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        value = self._mapper(record.key, record.value)
        self.context.forward(Record(record.key, value, record.timestamp, record.headers))


def new_value(key: Any, change: Change[Any]) -> Any:
    """Return the new value of a change: the mapper of `KTable.to_stream`."""
    del key
    return change.new_value


class StreamFlatMap(OperatorSupplier):
    """Forward each pair of the iterable that `mapper(key, value)` returns (`KStreamFlatMap`)."""

    def __init__(self, mapper: Mapper) -> None:
        self.mapper = mapper

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _FlatMap(self.mapper)


class _FlatMap(Processor[Any, Any]):
    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        for pair in _iterable(self._mapper(record.key, record.value), "flat_map"):
            key, value = _pair(pair, "flat_map")
            self.context.forward(Record(key, value, record.timestamp, record.headers))


class StreamFlatMapValues(OperatorSupplier):
    """Forward each value of the iterable that `mapper(key, value)` returns (`KStreamFlatMapValues`)."""

    def __init__(self, mapper: Mapper) -> None:
        self.mapper = mapper

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _FlatMapValues(self.mapper)


class _FlatMapValues(Processor[Any, Any]):
    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def process(self, record: Record[Any, Any]) -> None:
        for value in _iterable(self._mapper(record.key, record.value), "flat_map_values"):
            self.context.forward(Record(record.key, value, record.timestamp, record.headers))


class StreamForeach(OperatorSupplier):
    """Call `action(key, value)` for each record, and forward nothing or, with `forwards`, the record (`peek`)."""

    def __init__(self, action: Callable[[Any, Any], object], forwards: bool) -> None:
        self.action = action
        self.forwards = forwards

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _Foreach(self.action, self.forwards)


class _Foreach(Processor[Any, Any]):
    def __init__(self, action: Callable[[Any, Any], object], forwards: bool) -> None:
        self._action = action
        self._forwards = forwards

    def process(self, record: Record[Any, Any]) -> None:
        self._action(record.key, record.value)
        if self._forwards:
            self.context.forward(record)


class PassThrough(OperatorSupplier):
    """Forward each record as it is (`PassThrough`)."""

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return PassThroughProcessor()


class PassThroughProcessor(Processor[Any, Any]):
    """Forwards each record as it is."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward the record."""
        self.context.forward(record)


class StreamBranch(OperatorSupplier):
    """Forward each record to the child of the first predicate that is true (`KStreamBranch`).

    `children` has one name more than `predicates` if there is a default branch. Both lists grow while the program
    defines branches, so they are shared and not copied.
    """

    def __init__(self, predicates: Sequence[Predicate], children: Sequence[str]) -> None:
        self.predicates = predicates
        self.children = children

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _Branch(self.predicates, self.children)


class _Branch(Processor[Any, Any]):
    def __init__(self, predicates: Sequence[Predicate], children: Sequence[str]) -> None:
        self._predicates = predicates
        self._children = children

    def process(self, record: Record[Any, Any]) -> None:
        for predicate, child in zip(self._predicates, self._children, strict=False):
            if predicate(record.key, record.value):
                self.context.forward(record, child)
                return
        if len(self._children) > len(self._predicates):
            self.context.forward(record, self._children[-1])


class StreamPrint(OperatorSupplier):
    """Write a line for each record: `[label]: ` and what `text(key, value)` returns.

    `open_file` returns the file to write to. A file that it opens is closed with the task; standard output is not.
    """

    def __init__(
        self, label: str, text: Callable[[Any, Any], str], open_file: Callable[[], TextIO], owned: bool
    ) -> None:
        self.label = label
        self.text = text
        self.open_file = open_file
        self.owned = owned

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _Print(self)


class _Print(Processor[Any, Any]):
    def __init__(self, supplier: StreamPrint) -> None:
        self._supplier = supplier
        self._file: TextIO | None = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._file = self._supplier.open_file()

    def process(self, record: Record[Any, Any]) -> None:
        assert self._file is not None, "init opens the file"
        self._file.write(f"[{self._supplier.label}]: {self._supplier.text(record.key, record.value)}\n")

    def close(self) -> None:
        if self._file is None:
            return
        if self._supplier.owned:
            self._file.close()
        else:
            self._file.flush()


def _pair(result: Any, operation: str) -> tuple[Any, Any]:
    """Return a mapper's result as a key and a value.

    Raises:
        StreamsError: the result is not a pair.
    """
    if not isinstance(result, tuple) or len(result) != 2:
        raise StreamsError(f"the mapper of {operation} returned {result!r:.200}: expected a tuple (key, value)")
    return result


def _iterable(result: Any, operation: str) -> Iterator[Any]:
    """Return a mapper's result as an iterable.

    Raises:
        StreamsError: the result is not iterable.
    """
    try:
        iterator: Iterator[Any] = iter(result)
    except TypeError:
        raise StreamsError(f"the mapper of {operation} returned {result!r:.200}: expected an iterable") from None
    return iterator
