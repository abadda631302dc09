"""Run topologies of steps (`streams_steps.py`) with `pybroker.streams`, and return what the Java oracle returns."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pybroker.streams import serdes
from pybroker.streams.dsl.builder import StreamsBuilder
from pybroker.streams.errors import StreamsError
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.suppressed import BufferConfig, Suppressed
from pybroker.streams.testing import TopologyTestDriver
from pybroker.streams.topology.topology import Topology
from pybroker.streams.windows import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from tests.support import streams_functions as functions
from tests.support.streams_processors import NamedSupplier, store_builder
from tests.support.streams_steps import Step, decoded, encoded

SERDES = {
    "string": serdes.STRING,
    "int64": serdes.INT64,
    "bytes": serdes.BYTES,
    "windowed_string": serdes.time_windowed(serdes.STRING),
    "session_string": serdes.session_windowed(serdes.STRING),
}
SERDE_OPTIONS = ("key_serde", "value_serde", "other_value_serde")
CONSUMED = ("name", *SERDE_OPTIONS[:2], "offset_reset")
STORED = (*SERDE_OPTIONS[:2], "store", "caching", "logging", "retention")
VERSIONED_KEYS = ("a", "b", "c", "d", "aa", "ab")
"""Keys whose latest versions are read from a versioned store, which has no iterator over all keys."""
APPLICATION_ID = "oracle"


class Plan:
    """Builds a topology from steps. `nodes` has what each step returned, by the id of the step."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}
        self.branches: dict[str, list[str]] = {}
        self.seen: list[str] = []
        self.printed = io.StringIO()
        self.builder = StreamsBuilder()

    def build(self, given: Sequence[Step], config: dict[str, Any]) -> Topology:
        """Return the topology of all steps."""
        later = [step for step in given if step["op"].startswith("api_")]
        for step in given:
            if step not in later:
                self.nodes[step["id"]] = self._apply(step)
        topology = Topology() if len(later) == len(given) else self.builder.build(config)
        for step in later:
            API[step["op"]](topology, step)
        return topology

    def _apply(self, step: Step) -> Any:
        if step["op"] in SOURCES:
            return SOURCES[step["op"]](self.builder, step)
        on = self.nodes[step["on"]]
        own = getattr(self, f"_{step['op']}", None)
        if own is not None:
            return own(on, step)
        if step["op"] in JOINS:
            return self._join_with(on, self.nodes[step["with"]], step)
        return AGGREGATIONS[step["op"]](on, step) if step["op"] in AGGREGATIONS else stateless(on, step)

    def _merge(self, on: Any, step: Step) -> Any:
        return on.merge(self.nodes[step["with"]], **options(step, "name"))

    def _cogroup(self, on: Any, step: Step) -> Any:
        aggregator = _aggregator(step["fn"])
        return on.cogroup(self.nodes[step["with"]], aggregator) if "with" in step else on.cogroup(aggregator)

    def _peek(self, on: Any, step: Step) -> Any:
        return on.peek(self._seer(step), **options(step, "name"))

    def _foreach(self, on: Any, step: Step) -> None:
        on.foreach(self._seer(step), **options(step, "name"))

    def _seer(self, step: Step) -> Callable[[Any, Any], None]:
        def see(key: Any, value: Any) -> None:
            self.seen.append(f"{step['id']} {functions.printed(key)}={functions.printed(value)}")

        return see

    def _print(self, on: Any, step: Step) -> None:
        on.print(
            file=self.printed,
            # pybroker prints a blank before the comma, as the first releases of Kafka Streams did.
            mapper=lambda key, value: f"{functions.printed(key)}, {functions.printed(value)}",
            **options(step, "name", "label"),
        )

    def _split(self, on: Any, step: Step) -> None:
        split = on.split(**options(step, "name"))
        for branch in step["branches"]:
            split = split.branch(functions.PREDICATES[branch["fn"]], **self._branched(branch))
        last = step.get("default")
        every = split.no_default_branch() if last is None else split.default_branch(**self._branched(last))
        self.branches[step["id"]] = sorted(every)

    def _branched(self, branch: Step) -> dict[str, Any]:
        if "to" in branch:
            return {**options(branch, "name"), "with_consumer": lambda stream: stream.to(branch["to"])}

        def put(stream: Any) -> Any:
            through = branch.get("through")
            result = stream if through is None else stream.map_values(_value_mapper(through))
            self.nodes[branch["id"]] = result
            return result

        return {**options(branch, "name"), "with_function": put}

    def _join_with(self, left: Any, right: Any, step: Step) -> Any:
        """Join two streams, a stream and a table, or two tables, as the classes of the two sides demand."""
        kinds = (type(left).__name__, type(right).__name__)
        combine = functions.COMBINERS[step["fn"]]
        method = getattr(left, step["op"])
        joiner: Any = (lambda one, other: combine(None, one, other)) if not step.get("with_key") else combine
        if kinds == ("KTable", "KTable"):
            return method(right, joiner, **options(step, "name", *STORED))
        keyed = options(step, "name", "with_key")
        if kinds[1] == "GlobalKTable":
            return method(right, functions.MAPPERS[step["selector"]], joiner, **keyed)
        if kinds[1] == "KTable":
            return method(right, joiner, **keyed, **options(step, "grace", *SERDE_OPTIONS[:2]))
        return method(
            right, joiner, join_windows(step["windows"]), **keyed, **options(step, "store", "logging", *SERDE_OPTIONS)
        )

    def _join_on(self, left: Any, step: Step) -> Any:
        combine, extract = functions.COMBINERS[step["fn"]], functions.MAPPERS[step["extractor"]]
        return getattr(left, step["op"])(
            self.nodes[step["with"]],
            lambda key, value: extract(key, value),
            lambda one, other: combine(None, one, other),
            **options(step, "name", *STORED),
            with_key=True,
        )

    _left_join_on = _join_on


JOINS = ("join", "left_join", "outer_join")


def options(step: Step, *names: str) -> dict[str, Any]:
    """Return the named options that a step has as keyword arguments of the DSL."""
    result = {name: SERDES[step[name]] if name in SERDE_OPTIONS else step[name] for name in names if name in step}
    if "store" in names and "versioned" in step:
        result["history_retention"] = step["versioned"]
    return result


def _consumed(step: Step, *more: str) -> dict[str, Any]:
    result = options(step, *CONSUMED, *more)
    if "timestamp_extractor" in step:
        name = step["timestamp_extractor"]
        result["timestamp_extractor"] = lambda record, time: functions.timestamp(name, record, time)
    return result


def _stream(builder: StreamsBuilder, step: Step) -> Any:
    topics = re.compile(step["pattern"]) if "pattern" in step else step["topics"]
    return builder.stream(topics, **_consumed(step))


SOURCES: dict[str, Callable[[StreamsBuilder, Step], Any]] = {
    "stream": _stream,
    "table": lambda builder, step: builder.table(step["topic"], **_consumed(step, *STORED)),
    "global_table": lambda builder, step: builder.global_table(step["topic"], **_consumed(step, *STORED)),
    "state_store": lambda builder, step: builder.add_state_store(store_builder(step)),
    "global_store": lambda builder, step: builder.add_global_store(
        store_builder(step["store"]), step["topic"], NamedSupplier(step, "global_store"), **_consumed(step)
    ),
}

API: dict[str, Callable[[Topology, Step], Any]] = {
    "api_source": lambda topology, step: topology.add_source(step["name"], step["topics"]),
    "api_processor": lambda topology, step: topology.add_processor(step["name"], NamedSupplier(step), *step["parents"]),
    "api_sink": lambda topology, step: topology.add_sink(step["name"], step["topic"], *step["parents"]),
    "api_store": lambda topology, step: topology.add_state_store(store_builder(step), *step["processors"]),
    "api_connect": lambda topology, step: topology.connect_processor_and_state_stores(step["name"], *step["stores"]),
}


def _value_mapper(name: str) -> Callable[[Any], Any]:
    return lambda value: functions.MAPPERS[name](None, value)


def stateless(on: Any, step: Step) -> Any:
    """Apply an operation of a stream or a table that needs nothing of other steps."""
    is_table = type(on).__name__ == "KTable"
    operation, name = step["op"], step.get("fn", "")
    stored = options(step, "name", *STORED) if is_table else options(step, "name")
    match operation:
        case "filter" | "filter_not":
            return getattr(on, operation)(functions.PREDICATES[name], **stored)
        case "map_values":
            if step.get("with_key"):
                return on.map_values(functions.MAPPERS[name], with_key=True, **stored)
            return on.map_values(_value_mapper(name), **stored)
        case "flat_map_values":
            if step.get("with_key"):
                return on.flat_map_values(functions.LISTS[name], with_key=True, **stored)
            return on.flat_map_values(lambda value: functions.LISTS[name](None, value), **stored)
        case "select_key":
            return on.select_key(functions.MAPPERS[name], **stored)
        case "map":
            return on.map(functions.PAIRS[name], **stored)
        case "flat_map":
            return on.flat_map(lambda key, value: functions.pairs(name, key, value), **stored)
        case "repartition":
            return on.repartition(**options(step, "name", "partitions", *SERDE_OPTIONS[:2]))
        case "to":
            target = step["topic"] if "topic" in step else _topic_extractor(step["extractor"])
            return on.to(target, **options(step, "name", *SERDE_OPTIONS[:2]))
        case "to_table":
            return on.to_table(**options(step, "name", *STORED))
        case "to_stream":
            return on.to_stream(*([functions.MAPPERS[name]] if name else []), **options(step, "name"))
        case "suppress":
            return on.suppress(suppressed(step))
        case "process" | "process_values":
            return getattr(on, operation)(NamedSupplier(step, operation), *step.get("stores", ()), **stored)
        case "transform_values":
            return on.transform_values(NamedSupplier(step, operation), *step.get("stores", ()), **stored)
    raise ValueError(f"unknown operation {operation!r}")


def _topic_extractor(name: str) -> Callable[[Any, Any, Any], str]:
    return lambda key, value, context: functions.TOPICS[name](key, value)


def suppressed(step: Step) -> Suppressed:
    """Return the condition of a suppress step."""
    if step["until"] == "window_closes":
        result = Suppressed.until_window_closes(BufferConfig.unbounded())
    else:
        buffer = BufferConfig.unbounded()
        if "max_records" in step or "max_bytes" in step:
            buffer = buffer.emit_early_when_full() if step.get("full") != "shutdown" else buffer
            buffer = buffer.with_max_records(step["max_records"]) if "max_records" in step else buffer
            buffer = buffer.with_max_bytes(step["max_bytes"]) if "max_bytes" in step else buffer
        if not step.get("logging", True):
            buffer = buffer.with_logging_disabled()
        result = Suppressed.until_time_limit(step["wait"], buffer)
    return result.with_name(step["name"]) if "name" in step else result


def join_windows(given: Step) -> JoinWindows:
    """Return the windows of a join of two streams."""
    return JoinWindows(given.get("before", 0), given.get("after", 0), given.get("grace", 0))


def _windowed_by(on: Any, step: Step) -> Any:
    given = step["windows"]
    size, grace = given.get("size", 0), given.get("grace", 0)
    windows: Any
    match given["kind"]:
        case "sliding":
            windows = SlidingWindows.of_time_difference_and_grace(size, grace)
        case "session":
            windows = SessionWindows.of_inactivity_gap_and_grace(size, grace)
        case "unlimited":
            windows = UnlimitedWindows.of().start_on(given.get("start", 0))
        case _:
            windows = TimeWindows.of_size_and_grace(size, grace)
            windows = windows.advance_by(given["advance"]) if "advance" in given else windows
    windowed = on.windowed_by(windows)
    if "emit" not in step:
        return windowed
    strategy = EmitStrategy.ON_WINDOW_CLOSE if step["emit"] == "close" else EmitStrategy.ON_WINDOW_UPDATE
    return windowed.emit_strategy(strategy)


def _group_by(on: Any, step: Step) -> Any:
    selectors: Any = functions.PAIRS if type(on).__name__ == "KTable" else functions.MAPPERS
    return on.group_by(selectors[step["fn"]], **options(step, "name", *SERDE_OPTIONS[:2]))


def _aggregator(name: str) -> Callable[[Any, Any, Any], Any]:
    return lambda key, value, aggregate: functions.COMBINERS[name](key, aggregate, value)


def _reducer(name: str) -> Callable[[Any, Any], Any]:
    return lambda aggregate, value: functions.COMBINERS[name](None, aggregate, value)


def _reduce(on: Any, step: Step) -> Any:
    reducers = [_reducer(step[field]) for field in ("fn", "subtractor") if field in step]
    return on.reduce(*reducers, **options(step, "name", *STORED))


def _aggregate(on: Any, step: Step) -> Any:
    start = step.get("initializer", "")
    arguments: list[Any] = [lambda: None if start == "null" else start]
    arguments += [_aggregator(step[field]) for field in ("fn", "subtractor") if field in step]
    if "merger" in step:
        arguments.append(functions.COMBINERS[step["merger"]])
    return on.aggregate(*arguments, **options(step, "name", *STORED))


AGGREGATIONS: dict[str, Callable[[Any, Step], Any]] = {
    "group_by": _group_by,
    "group_by_key": lambda on, step: on.group_by_key(**options(step, "name", *SERDE_OPTIONS[:2])),
    "windowed_by": _windowed_by,
    "count": lambda on, step: on.count(**options(step, "name", *STORED)),
    "reduce": _reduce,
    "aggregate": _aggregate,
}


def configuration(config: dict[str, str]) -> dict[str, Any]:
    """Return the configuration of a topology of text, with the settings of a test."""
    given: dict[str, Any] = {
        name: int(value) if name == "statestore.cache.max.bytes" else value for name, value in config.items()
    }
    defaults = {"default.key.serde": serdes.STRING, "default.value.serde": serdes.STRING}
    return {"application.id": APPLICATION_ID, **defaults, **given}


def describe(topology: Sequence[Step], config: dict[str, str]) -> dict[str, Any]:
    """Return the description of a topology, or the error of building it."""
    plan = Plan()
    try:
        description = str(plan.build(topology, configuration(config)).describe())
    except (StreamsError, ValueError) as error:
        return failure(error)
    return {"branches": plan.branches, "description": description}


def run(
    topology: Sequence[Step], config: dict[str, str], inputs: Iterable[Step], stores: Iterable[str]
) -> dict[str, Any]:
    """Return the records that a topology produces from inputs, and the contents of its stores."""
    plan = Plan()
    whole = configuration(config)
    try:
        driver = TopologyTestDriver(plan.build(topology, whole), whole)
    except (StreamsError, ValueError) as error:
        return failure(error)
    result: dict[str, Any] = {"branches": plan.branches}
    try:
        for index, given in enumerate(inputs):
            try:
                pipe(driver, given)
            except StreamsError as error:
                result |= {**failure(error), "failed_at": index}
                break
        result["produced"] = {topic: produced(driver, topic) for topic in sorted(driver.produced_topics())}
        if "error" not in result:
            result["stores"] = {name: store_lines(driver.state_store(name)) for name in stores}
    finally:
        driver.close()
    return {**result, "seen": plan.seen, "printed": plan.printed.getvalue()}


def failure(error: Exception) -> dict[str, Any]:
    """Return the part of a result that describes an exception."""
    return {"error": type(error).__name__, "message": str(error)}


def pipe(driver: Any, given: Step) -> None:
    """Pass one input to the driver."""
    if "advance_ms" in given:
        driver.advance_wall_clock_time(given["advance_ms"])
        return
    headers = tuple((name, decoded(value)) for name, value in given.get("headers", ()))
    driver.pipe_record(
        given["topic"], decoded(given.get("key")), decoded(given.get("value")), given["timestamp"], headers
    )


def produced(driver: Any, topic: str) -> list[Step]:
    """Return the records of a topic as the oracle returns them."""
    return [
        {
            "key": encoded(record.key),
            "value": encoded(record.value),
            "timestamp": record.timestamp,
            "headers": [[name, encoded(data)] for name, data in record.headers],
        }
        for record in driver.produced(topic)
    ]


def store_lines(store: Any) -> list[str]:
    """Return the contents of a store, a line for each entry."""
    if hasattr(store, "get_as_of"):
        latest = [(key, store.get(key)) for key in VERSIONED_KEYS]
        return [f"{key} = " + (f"{at.value} at {at.timestamp}" if at else "null") for key, at in latest]
    entries = store.all() if hasattr(store, "all") else store.find_sessions_between(None, None, 0, 1 << 62)
    return [
        f"{key} = {value.value} at {value.timestamp}"
        if isinstance(value, ValueAndTimestamp)
        else f"{key} = {functions.printed(value)}"
        for key, value in entries
    ]
