"""Every client of `pybroker.client`, and calls of their public methods with arguments generated from annotations.

Owns the table of clients: a test fails for each client class that is missing in `CLIENTS`. Must not know how tests
misuse them.
"""

from __future__ import annotations

import inspect
import itertools
import os
import threading
import typing
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace, UnionType
from typing import Any

import pyarrow as pa

from pybroker import client
from pybroker.client import ConsumeTransformProduce, Producer
from pybroker.client.text import RecordFormat

BRIEF_MS = 200
BRIEF = {"request.timeout.ms": BRIEF_MS, "default.api.timeout.ms": BRIEF_MS, "retry.backoff.ms": 10}
BRIEF_PRODUCER = {
    "request.timeout.ms": BRIEF_MS,
    "delivery.timeout.ms": BRIEF_MS,
    "max.block.ms": BRIEF_MS,
    "linger.ms": 0,
}
GROUP = {"group.id": "misuse", "enable.auto.commit": False}
Make = Callable[[str], Any]
_numbers = itertools.count()


def _copier(servers: str) -> ConsumeTransformProduce:
    return ConsumeTransformProduce(
        servers, ["t"], lambda _: [], group_id="copier", transactional_id="copier", producer={"max.block.ms": 60_000}
    )


def _transactional() -> dict[str, object]:
    """Return the settings of a producer with a unique transactional.id."""
    return {**BRIEF_PRODUCER, "transactional.id": f"misuse-{os.getpid()}-{next(_numbers)}"}


def _in_a_transaction(servers: str) -> Producer:
    producer = Producer(servers, {**_transactional(), "max.block.ms": 60_000})
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"v")
    return producer


CLIENTS: dict[str, Make] = {
    "Admin": lambda servers: client.Admin(servers, BRIEF),
    "AsyncAdmin": lambda servers: client.AsyncAdmin(servers, BRIEF),
    "AsyncConsumer": lambda servers: client.AsyncConsumer(servers, {**BRIEF, **GROUP}),
    "AsyncFetcher": lambda servers: client.AsyncFetcher(servers, {"request.timeout.ms": BRIEF_MS}),
    "AsyncProducer": lambda servers: client.AsyncProducer(servers, BRIEF_PRODUCER),
    "ColumnFetcher": lambda servers: client.ColumnFetcher(servers, {"request.timeout.ms": BRIEF_MS}),
    "ConsumeTransformProduce": _copier,
    "Consumer": lambda servers: client.Consumer(servers, {**BRIEF, **GROUP}),
    "Fetcher": lambda servers: client.Fetcher(servers, {"request.timeout.ms": BRIEF_MS}),
    "Producer": lambda servers: Producer(servers, BRIEF_PRODUCER),
    "AsyncProducer with transactional.id": lambda servers: client.AsyncProducer(servers, _transactional()),
    "Producer with transactional.id": lambda servers: Producer(servers, _transactional()),
    "Producer in a transaction": _in_a_transaction,
}
"""Factories by class name, with a suffix for a special configuration."""
NEEDS_A_BROKER = {
    "ConsumeTransformProduce": "its constructor initializes transactions",
    "Producer in a transaction": "it has begun one",
}
ENGINE = {
    "begin_phase",
    "post",
    "post_again",
    "raise_late",
    "send_batch",
    "send_many",
    "send_random_letters",
    "send_stamped",
    "send_stream",
    "summary",
    "take_interval",
}
"""Methods of `Producer` for load generators and `AsyncProducer`, inherited from the native engine: no annotations."""
VALUES: dict[str, Any] = {
    "timeout_s": 0.1,
    "timeout_ms": BRIEF_MS,
    "batch": pa.record_batch({"value": [b"v"], "topic": ["t"]}),
    "columns": ["value"],
    "pattern": None,
    "layout": RecordFormat(
        style="text",
        shown={"value"},
        key_separator=b"",
        line_separator=b"",
        headers_separator=b"",
        null_literal=b"",
        key=None,
        value=None,
        headers=None,
        logs=False,
    ),
    "resource_type": 2,
    "topic": "t",
    "value": b"v",
}
"""Arguments by name, where no valid value follows from the annotation."""


def kinds() -> list[str]:
    """Return the classes of `pybroker.client` that have a `close` method."""
    return [n for n in client.__all__ if inspect.isclass(o := getattr(client, n)) and hasattr(o, "close")]


def class_of(kind: str) -> Any:
    """Return the class of a client in the table."""
    return getattr(client, kind.split()[0])


def methods(kind: str) -> list[str]:
    """Return the public methods of a class, except class methods and those of the engine."""
    cls = class_of(kind)
    found = [n for n in dir(cls) if not n.startswith("_") and inspect.isroutine(getattr(cls, n))]
    return [n for n in found if not inspect.ismethod(getattr(cls, n)) and (cls is not Producer or n not in ENGINE)]


def is_async(kind: str) -> bool:
    return inspect.iscoroutinefunction(class_of(kind).close)


def parameters(kind: str, method: str) -> dict[str, tuple[Any, bool]]:
    """Return the parameters of a method: the annotation, and whether a value is required."""
    function = inspect.unwrap(getattr(class_of(kind), method))
    try:
        hints = hints_of(function)
        found = inspect.signature(function).parameters
    except (AttributeError, TypeError, ValueError):
        return {}
    return {
        name: (hints.get(name, Any), p.default is p.empty)
        for name, p in found.items()
        if name != "self" and p.kind is not p.VAR_KEYWORD
    }


def hints_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a function's parameters."""
    written = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    return typing.get_type_hints(SimpleNamespace(__annotations__=written), function.__globals__)


def value_of(hint: Any, name: str = "") -> Any:
    """Return a value that matches an annotation."""
    if name in VALUES:
        return VALUES[name]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return value_of(inner[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {value_of(inner[0]): value_of(inner[1])}
    if isinstance(origin, type) and issubclass(origin, tuple):
        return tuple(value_of(part) for part in inner if part is not ...)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return [value_of(inner[0])]
    if origin is not None:
        return lambda *_: None
    plain: dict[Any, Any] = {str: "t", int: 1, float: 1.0, bytes: b"0" * 16, bool: False, Any: None, type(None): None}
    if hint in plain:
        return plain[hint]
    if hint is threading.Event:
        stopped = threading.Event()
        stopped.set()
        return stopped
    hints = typing.get_type_hints(hint)
    required = [p.name for p in inspect.signature(hint).parameters.values() if p.default is p.empty]
    return hint(**{name: value_of(hints.get(name, Any)) for name in required})


def arguments(kind: str, method: str) -> dict[str, Any]:
    """Return valid arguments for a call: the required ones, and short timeouts."""
    return {
        name: value_of(hint, name)
        for name, (hint, required) in parameters(kind, method).items()
        if required or name in ("timeout_s", "timeout_ms", "stop")
    }


def call(made: Any, kind: str, method: str, changed: Mapping[str, Any] | None = None) -> Any:
    """Call a method. Returns a coroutine for an asyncio client."""
    given = {**arguments(kind, method), **(changed or {})}
    function = inspect.unwrap(getattr(class_of(kind), method))
    try:
        varied = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_POSITIONAL]
    except ValueError:
        varied = []
    further = [given.pop(name) for name in varied if name in given]
    return getattr(made, method)(*further, **given)


async def awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
