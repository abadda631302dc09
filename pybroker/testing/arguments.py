"""Validation of the arguments of `pybroker.testing`, before a call does anything.

Owns the rules by argument name, and the error messages. Must not know the calls: a call itself checks conditions
that depend on the broker, such as a version that it does not serve.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from pybroker.testing.names import api_named

# The traceback of an invalid call ends at the line of the test.
__tracebackhide__ = True

P = ParamSpec("P")
R = TypeVar("R")

ONLY = ("topic", "partition", "group", "client_id")
"""The arguments that restrict a fault, which its calls take as `**only`."""


class Rule(NamedTuple):
    """The rule of an argument."""

    expected: str
    """A description of valid values, with an example."""
    has_type: Callable[[Any], bool]
    is_right: Callable[[Any], bool] = lambda _: True
    """Whether a value of the type is valid. A value of another type raises TypeError, an invalid one ValueError."""
    shown: Callable[[Any], str] = repr
    """Formats the invalid value for the message."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a method: check its arguments when it is called, before it is awaited or entered.

    The call raises TypeError or ValueError with a message that names the argument, its value and a valid one.
    """
    arguments = _Arguments(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        arguments.check(args[1:], kwargs)
        return function(*args, **kwargs)

    return call


class _Arguments:
    """The parameters of one method except `self`, and the rule of each."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Find the rules. Raises LookupError for a parameter without a rule."""
        self._qualified = function.__qualname__
        self._owner, _, name = self._qualified.rpartition(".")
        self._name = name if name != "__init__" else self._owner
        _, *self._parameters = inspect.signature(function).parameters.values()
        kinds = inspect.Parameter
        self._named = {one.name: one for one in self._parameters if one.kind not in (kinds.VAR_KEYWORD,)}
        self._others = next((one.name for one in self._parameters if one.kind is kinds.VAR_KEYWORD), None)
        self._by_position = [one for one in self._parameters if one.kind is kinds.POSITIONAL_OR_KEYWORD]
        self._rest = next((one.name for one in self._parameters if one.kind is kinds.VAR_POSITIONAL), None)
        self._rules = {one.name: self._rule(one.name) for one in self._parameters if one.name != "only"}
        if self._others == "only":
            self._rules |= {name: self._rule(name) for name in ONLY}

    def _rule(self, name: str) -> Rule:
        for key in (f"{self._qualified}.{name}", f"{self._owner}.{name}", name):
            if key in RULES:
                return RULES[key]
        raise LookupError(f"{self._qualified} has the argument {name}: give it a rule in RULES")

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Check the arguments of one call. Raises TypeError and ValueError."""
        known = [*self._named, *(ONLY if self._others == "only" else ())]
        if len(args) > len(self._by_position) and self._rest is None:
            raise TypeError(f"{self._name}({args[len(self._by_position)]!r}): {self._too_many(known)}")
        given = dict(zip((one.name for one in self._by_position), args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"{self._name}({name}={value!r}): expected one {name}; {given[name]!r} is already set")
            if name not in self._rules and self._others in (None, "only"):
                raise TypeError(f"{self._name}({name}={value!r}): no such argument{_near(name, known)}")
        for one in self._parameters:
            if one.default is one.empty and one.name in self._named and one.name not in {*given, *kwargs, self._rest}:
                raise TypeError(f"{self._name}() lacks {one.name}: expected {self._rules[one.name].expected}")
        for value in args[len(self._by_position) :]:
            self._check_one("", value, self._rules[str(self._rest)])
        for name, value in {**given, **kwargs}.items():
            self._check_one(f"{name}=", value, self._rules.get(name) or self._rules[str(self._others)])

    def _check_one(self, name: str, value: Any, rule: Rule) -> None:
        if not rule.has_type(value):
            raise TypeError(f"{self._name}({name}{rule.shown(value)}): expected {rule.expected}")
        if not rule.is_right(value):
            raise ValueError(f"{self._name}({name}{rule.shown(value)}): expected {rule.expected}")

    def _too_many(self, known: list[str]) -> str:
        if self._others == "settings":
            return "pass settings by name, as in num_partitions=3"
        by_name = [f"{name}=" for name in known if all(one.name != name for one in self._by_position)]
        return f"expected it by name: {', '.join(by_name)}" if by_name else "one value too many"


def _near(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.5)
    return f"; is {near[0]} meant? there are {', '.join(known)}" if near else f"; there are {', '.join(known)}"


# ------------------------------------------------------------------------------------------------------ kinds of values


def _is(*types: type) -> Callable[[Any], bool]:
    """Return a check for values of these types; a bool is no number."""
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _is_none_or(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or test(value)


def _is_at_least(least: int) -> Callable[[Any], bool]:
    return lambda value: value is None or (math.isfinite(value) and value >= least)


def _are(value: Any, test: Callable[[Any], bool]) -> bool:
    return not isinstance(value, str | bytes) and isinstance(value, Iterable) and all(map(test, value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and all(map(_is(int), value))


def _is_step(value: Any) -> bool:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return math.isfinite(seconds) and 0 <= seconds <= timedelta.max.total_seconds()


def _maps(value: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) and test(one) for key, one in value.items())


def _wrong_items(value: Any) -> str:
    """Return the items of a mapping that are no texts, but not the others, which may be secret."""
    if not isinstance(value, Mapping):
        return repr(value)
    wrong = (f"{key!r}: {one!r}" for key, one in value.items() if not (isinstance(key, str) and isinstance(one, str)))
    return f"{{{', '.join(wrong)}}}"


def _names(value: Any) -> str:
    """Return the keys of a mapping whose values are secret."""
    return f"{{{', '.join(f'{key!r}: ...' for key in value)}}}" if isinstance(value, Mapping) else repr(value)


_TEXT, _PATH = _is(str), _is(str, os.PathLike)
_SECONDS = Rule("seconds such as 0.5, 0 or more", _is(int, float), _is_at_least(0))
_SWITCH = Rule("True or False", _is(bool))
_A_BROKER = Rule("the id of a broker such as 1", _is(int), _is_at_least(0))
_ANY_BROKER = Rule("the id of a broker such as 1, or None for all", _is_none_or(_is(int)), _is_at_least(0))
_API = "an API's name such as 'Produce'"
_ONE_API = Rule(_API, _TEXT, lambda name: api_named(name) is not None)

RULES: dict[str, Rule] = {
    "api": Rule(
        f"{_API}, several of them, or None for all",
        _is_none_or(lambda value: isinstance(value, Iterable) and not isinstance(value, bytes)),
    ),
    "AsyncBroker.wait_for.api": _ONE_API,
    "RequestLog.api": _ONE_API,
    "apis": _ONE_API,
    "code": Rule("an error of Kafka's such as 'NOT_ENOUGH_REPLICAS' or 19", _is(int, str)),
    "times": Rule(
        "a number of requests such as 2, or None for all until remove()", _is_none_or(_is(int)), _is_at_least(1)
    ),
    "Fault.times": Rule("a number of requests such as 2", _is(int), _is_at_least(1)),
    "AsyncBroker.times": Rule("a number of requests such as 2", _is(int), _is_at_least(1)),
    "count": Rule("a number of requests such as 2", _is(int), _is_at_least(1)),
    "message": Rule("a text such as 'not today', or None", _is_none_or(_TEXT)),
    "delay": _SECONDS,
    "seconds": _SECONDS,
    "timeout": _SECONDS,
    "after": _SWITCH,
    "keep": _SWITCH,
    "topic": Rule("a topic's name such as 'orders', or None for all", _is_none_or(_TEXT)),
    "partition": Rule("a partition's number such as 0, or None for all", _is_none_or(_is(int)), _is_at_least(0)),
    "Cluster.topic": Rule("a topic's name such as 'orders'", _TEXT),
    "Cluster.partition": Rule("a partition's number such as 0", _is(int), _is_at_least(0)),
    "group": Rule("a group's id such as 'shop', or None for all", _is_none_or(_TEXT)),
    "client_id": Rule("a client's id such as 'shop-1', or None for all", _is_none_or(_TEXT)),
    "function": Rule("a function of a Request, such as lambda request: None", callable),
    "where": Rule("a function of a Request, such as lambda request: request.version >= 4", callable),
    "reached": Rule("a function of a PartitionDescription, such as lambda it: it.leader == 1", callable),
    "fault": Rule("a Fault, as fail() returns it", lambda value: hasattr(value, "fired")),
    "limits": Rule("two versions such as (4, 11), or None", _is_none_or(_is_pair)),
    "by": Rule(
        "a timedelta such as timedelta(days=1), or seconds such as 86400; the clock cannot go back",
        _is(int, float, timedelta),
        _is_step,
    ),
    "directory": Rule("a path such as 'data', or None for a temporary one", _is_none_or(_PATH)),
    "properties": Rule(
        "texts by Kafka's names, as in {'num.partitions': '3'}",
        _is_none_or(lambda value: _maps(value, _TEXT)),
        shown=_wrong_items,
    ),
    "settings": Rule("a text, a number, True or False", _is(str, os.PathLike, int, float, bool)),
    "security": Rule("'SSL', 'SASL_PLAINTEXT', 'SASL_SSL' or None", _is_none_or(_TEXT)),
    "users": Rule(
        "passwords by name, as in {'alice': 'secret'}, or None",
        _is_none_or(lambda value: _maps(value, _TEXT)),
        shown=_names,
    ),
    "user": Rule("a user's name such as 'alice', or None", _is_none_or(_TEXT)),
    "mechanism": Rule("'PLAIN', 'SCRAM-SHA-256' or 'SCRAM-SHA-512'", _TEXT),
    "Cluster.__init__.brokers": Rule("a number of brokers such as 3", _is(int), _is_at_least(1)),
    "Cluster.wait_in_sync.brokers": Rule(
        "ids of brokers such as [1, 2], or None for all replicas", _is_none_or(lambda value: _are(value, _is(int)))
    ),
    "Cluster.broker": _A_BROKER,
    "Cluster.start.broker": _ANY_BROKER,
    "Cluster.stop.broker": _ANY_BROKER,
    "racks": Rule(
        "a rack, or None, for each broker, as in ['a', 'b', None]",
        _is_none_or(lambda value: isinstance(value, list | tuple) and _are(value, _is_none_or(_TEXT))),
    ),
    "client": Rule(
        "settings of a client by Kafka's names, as in {'security.protocol': 'SSL'}, or None",
        _is_none_or(lambda value: _maps(value, lambda _: True)),
        shown=_names,
    ),
}
"""Rules by argument name. A rule of a class or of a method takes precedence."""
