"""Checks of the arguments of public calls against the annotations of the methods.

Owns which values fit an annotation, the ranges of times and counts by argument name, and the error messages. Must
not depend on a client: `check_arguments` and `pybroker.client.one_caller` add the checks to a class.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import re
import reprlib
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from pybroker.client.errors import ArgumentError, SettingError

Class = TypeVar("Class", bound=type)

_LEAST = {"timeout_s": 0, "timeout_ms": 0, "max_records": 1, "max_bytes": 1}
"""Lowest values by argument name. NaN is rejected."""
_EXAMPLES = {
    "str": "'orders'",
    "int": "1",
    "float": "1.0",
    "bytes": "b'key'",
    "TopicPartition": "TopicPartition('orders', 0)",
    "NewTopic": "NewTopic('orders', 3)",
    "MorePartitions": "MorePartitions(6)",
    "OffsetAndMetadata": "OffsetAndMetadata(42)",
    "Replica": "Replica('orders', 0, 1)",
    "Pattern": "re.compile('orders-.*')",
}
_ABBREVIATED = reprlib.Repr()
_ABBREVIATED.maxstring = _ABBREVIATED.maxother = 80


class Arguments:
    """The arguments of one method."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__name__
        hints = _hints_of(function)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        self._positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._further = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        self._hints = {name: hint for name, hint in hints.items() if hint is not Any}
        self._plain = {name: frozenset(_plain_types(hint)) for name, hint in self._hints.items()}
        """Classes by argument whose instances are accepted without a further check."""

    def check(self, client: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise ArgumentError for a value of a wrong type, and SettingError for one out of its range."""
        for name, value in zip(self._positional, args, strict=False):
            self._check(client, name, value)
        if self._further is not None:
            for value in args[len(self._positional) :]:
                self._check(client, self._further, value)
        for name, value in kwargs.items():
            self._check(client, name, value)

    def _check(self, client: object, name: str, value: Any) -> None:
        plain = self._plain.get(name)
        if plain is None or (type(value) in plain and (name not in _LEAST or value is None or value >= _LEAST[name])):
            return
        call, hint = f"{type(client).__name__}.{self._name}", self._hints[name]
        if (wrong := _find_misfit(value, hint)) is not None:
            part, expected = wrong
            raise ArgumentError(
                f"{call}({name}={_ABBREVIATED.repr(value)}): {_ABBREVIATED.repr(part)} is a "
                f"{type(part).__name__}; expected {_describe(expected)}, as {name}={_example(hint)}"
            )
        least = _LEAST.get(name)
        if least is not None and value is not None and not value >= least:
            raise SettingError(f"{call}({name}={value}): expected a number >= {least}, as {name}={_example(hint)}")


def check_arguments(cls: Class) -> Class:
    """Wrap every public method of a class with a check of its arguments."""
    for name in dir(cls):
        function = inspect.getattr_static(cls, name)
        if not name.startswith("_") and inspect.isfunction(function):
            setattr(cls, name, checked(function))
    setattr(cls, "__init__", refuse_keywords(vars(cls)["__init__"]))  # noqa: B010 (mypy refuses the plain assignment)
    return cls


def checked(function: Callable[..., Any]) -> Any:
    """Return a method that checks its arguments."""

    @functools.wraps(function)
    async def call_async(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        arguments_of(function).check(self, args, kwargs)
        return await function(self, *args, **kwargs)

    @functools.wraps(function)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        arguments_of(function).check(self, args, kwargs)
        return function(self, *args, **kwargs)

    return call_async if inspect.iscoroutinefunction(function) else call


@functools.cache
def arguments_of(function: Callable[..., Any]) -> Arguments:
    """Return the arguments of a method; the first call of a method evaluates its annotations."""
    return Arguments(function)


def refuse_keywords(init: Callable[..., None]) -> Any:
    """Wrap `__init__`: the error for an unknown keyword explains where settings are given."""
    known = frozenset(inspect.signature(init).parameters)

    @functools.wraps(init)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> None:
        kind = type(self).__name__
        if unknown := kwargs.keys() - known:
            name = min(unknown)
            value, key = _ABBREVIATED.repr(kwargs[name]), name.replace("_", ".")
            key = key if "." in key else f"{key}.id"
            raise ArgumentError(
                f"{kind}({name}={value}): no such argument; servers are first, settings second by Kafka's names, as "
                f"{kind}('localhost:9092', {{'{key}': {value}}})"
            )
        if "bootstrap_servers" in known and not args and "bootstrap_servers" not in kwargs and _is_required(init):
            raise ArgumentError(f"{kind}(): bootstrap_servers is missing: {kind}('localhost:9092')")
        init(self, *args, **kwargs)

    return call


def _is_required(init: Callable[..., None]) -> bool:
    return inspect.signature(init).parameters["bootstrap_servers"].default is inspect.Parameter.empty


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Evaluate the annotations of parameters.

    The return annotation is skipped: a native class may not be subscriptable.
    """
    written = inspect.unwrap(function)
    parameters = {name: hint for name, hint in written.__annotations__.items() if name != "return"}
    return typing.get_type_hints(types.SimpleNamespace(__annotations__=parameters), written.__globals__)


def _plain_types(hint: Any) -> list[type]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [kind for arm in typing.get_args(hint) for kind in _plain_types(arm)]
    if hint is float:
        return [float, int]
    return [hint] if isinstance(hint, type) and typing.get_origin(hint) is None else []


def _find_misfit(value: Any, hint: Any) -> tuple[Any, Any] | None:
    """Return the part of a value that does not fit a type, and the type that it must have; None where all fits."""
    origin: Any = typing.get_origin(hint)
    inner = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        misfits = [_find_misfit(value, arm) for arm in inner]
        if None in misfits:
            return None
        # The best fitting union member is the one whose misfit is a part inside of the value.
        return next((m for m in misfits if m is not None and m[0] is not value), (value, hint))
    if origin is None:
        return None if _is_of(value, hint) else (value, hint)
    if not isinstance(origin, type) or origin is type:
        return None
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return value, hint
        return _first(value, inner[0]) or _first(value.values(), inner[1])
    if issubclass(origin, Iterable) and not issubclass(origin, tuple):
        needs = Iterable if origin is Iterable else Collection
        if isinstance(value, str | bytes) or not isinstance(value, needs):
            return value, hint
        return _first(value, inner[0]) if isinstance(value, Collection) else None
    if origin is collections.abc.Callable:
        return None if callable(value) else (value, hint)
    return None if isinstance(value, origin) else (value, hint)


def _first(values: Iterable[Any], hint: Any) -> tuple[Any, Any] | None:
    return next((misfit for value in values if (misfit := _find_misfit(value, hint)) is not None), None)


def _is_of(value: Any, kind: Any) -> bool:
    kind = getattr(kind, "__supertype__", kind)
    if kind is None:
        return value is None
    if kind is int:
        return hasattr(value, "__index__")
    if kind is float:
        return hasattr(value, "__float__") and not isinstance(value, str | bytes)
    if kind is bytes:
        return isinstance(value, bytes | bytearray | memoryview)
    if not isinstance(kind, type) or kind in (bool, object) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind)


def _describe(hint: Any) -> str:
    """Return the name of a type without modules, for messages."""
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return re.sub(r"[\w.]+\.(?=\w)", "", text).replace("NoneType", "None")


def _example(hint: Any) -> str:
    origin: Any = typing.get_origin(hint)
    inner = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _example(inner[0])
    if origin is collections.abc.Callable:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"{{{_example(inner[0])}: {_example(inner[1])}}}"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return f"[{_example(inner[0])}]"
    name = getattr(origin or hint, "__name__", str(hint))
    return _EXAMPLES.get(name, f"{name}()")
