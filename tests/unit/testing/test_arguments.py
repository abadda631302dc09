"""Every argument of the public calls of `pybroker.testing` is checked at the call; an error names a right value."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

import pybroker.testing
from pybroker.testing import AsyncBroker, Broker, Cluster, Fault, Request, RequestLog
from pybroker.testing.arguments import ONLY, checked

# No request comes here.
pytestmark = pytest.mark.filterwarnings("ignore::pybroker.testing.UnfiredFaultWarning")

MADE_BY_PYBROKER = (Fault, Request, RequestLog)
"""Classes whose objects tests receive: they do not make them."""
CALLED_BY_PYBROKER = {"Fault.take", "Fault.failed", "RequestLog.add", "Request.name_of"}
NO_CALLS = {"Outcome", "UnfiredFaultWarning"}
"""Public names that have no methods of their own."""

RIGHT: dict[str, Any] = {
    "api": "Produce",
    "code": 1,
    "seconds": 1,
    "function": print,
    "reached": bool,
    "by": timedelta(1),
    "topic": "orders",
    "partition": 0,
    "broker": 1,
}
"""Values of the arguments that calls must have."""
NOT_A_TEXT, NOT_A_COUNT, NOT_SECONDS = [5, b"x", ["x"]], ["2", 2.5, True, 0, -1], ["1", None, -1, float("nan")]
NOT_A_NUMBER = ["0", 0.5, True, -1]
WRONG: dict[str, list[Any]] = {
    "api": [5, b"Produce", [], ["Produce", 5], "Prodcue"],
    "apis": [5, None, "Prodcue"],
    "code": [None, 1.5, True, [1], 9999, "NOT_LEADER"],
    "times": NOT_A_COUNT,
    "count": [*NOT_A_COUNT, None],
    "message": NOT_A_TEXT,
    "delay": NOT_SECONDS,
    "seconds": NOT_SECONDS,
    "timeout": NOT_SECONDS,
    "after": ["yes", 1, None],
    "keep": ["yes", 1, None],
    "topic": NOT_A_TEXT,
    "partition": NOT_A_NUMBER,
    "group": NOT_A_TEXT,
    "client_id": NOT_A_TEXT,
    "function": [5, None],
    "where": [5, None],
    "reached": [5, None],
    "fault": [5, None, "Produce"],
    "limits": [4, "4", (4,), (4, 5, 6), ("4", "11"), (True, 4), (4.0, 11), (0, 99), (11, 4)],
    "by": ["1d", None, True, -1, timedelta(-1), float("inf"), 1e300],
    "directory": [5, b"data"],
    "properties": [5, "a=b", [("num.partitions", "3")], {"num.partitions": 3}, {5: "x"}, {"broker.rack": None}],
    "settings": [None, ["a"], {"a": "b"}, b"x"],
    "security": [5, "TLS"],
    "users": [5, "alice", ["alice"], {"alice": 17}, {5: "hidden"}],
    "user": NOT_A_TEXT,
    "mechanism": [*NOT_A_TEXT, None],
    "brokers": [5.0, "3", True, [1, "2"]],
    "broker": ["1", 1.0, True, -1],
    "racks": ["abc", 5, ["a", 5]],
    "client": [5, "a=b", {5: "hidden"}],
}
WRONGLY: dict[type, Any] = {Broker: Broker, Cluster: Cluster}
"""Classes without their types, to be called as they must not be."""
NOT_SHOWN = {"users": re.compile("hidden|17"), "client": re.compile("hidden")}
"""What no message repeats of a wrong value."""


def public_calls() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """The methods of the public classes that have arguments, once each."""
    seen = set()
    for name in pybroker.testing.__all__:
        if name in NO_CALLS:
            continue
        owner = getattr(pybroker.testing, name)
        for method, function in inspect.getmembers(owner, inspect.isfunction):
            if method == "__init__" and owner in MADE_BY_PYBROKER:
                continue
            if function.__qualname__ in CALLED_BY_PYBROKER or (method.startswith("_") and method != "__init__"):
                continue
            if len(inspect.signature(function).parameters) > 1 and (owner, method) not in seen:
                seen.add((owner, method))
                yield owner, method, function


def arguments_of(function: Callable[..., Any]) -> list[str]:
    _, *found = inspect.signature(function).parameters
    return [one for name in found for one in (ONLY if name == "only" else (name,))]


CASES = [(owner, method, name) for owner, method, function in public_calls() for name in arguments_of(function)]


@cache
def made(owner: type) -> Any:
    """An object of a public class; a broker that does not run."""
    if owner is Fault:
        return made(Broker).fail("Produce", 1)
    return made(Broker).requests if owner is RequestLog else owner()


@pytest.fixture(scope="module", autouse=True)
def removed() -> Iterator[None]:
    """What `made` has made is removed at the end."""
    yield
    for owner in (Broker, AsyncBroker, Cluster):
        thing = made(owner)
        getattr(thing, "broker", thing)._finalizer()
    made.cache_clear()


def call_with(owner: type, method: str, name: str, value: Any) -> object:
    """Call a method with one wrong argument, and right ones where it must have them."""
    function = owner if method == "__init__" else getattr(made(owner), method)
    args, kwargs = [], {}
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_POSITIONAL and name == one.name:
            args.append(value)
        elif one.name == name and one.kind is one.VAR_KEYWORD:
            kwargs["Fetch" if name == "limits" else "num_partitions"] = value
        elif one.name == name or (name in ONLY and one.name == "only"):
            kwargs[name] = value
        elif one.default is one.empty and one.name in ("fault",):
            kwargs[one.name] = made(Fault)
        elif one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD:
            kwargs[one.name] = RIGHT[one.name]
    return function(*args, **kwargs)


@pytest.mark.parametrize(("owner", "method", "name"), CASES, ids=lambda it: getattr(it, "__name__", it))
def test_a_wrong_argument_is_refused_with_its_name_its_value_and_a_right_one(
    owner: type, method: str, name: str
) -> None:
    for value in WRONG[name]:
        with pytest.raises((TypeError, ValueError)) as refused:
            call_with(owner, method, name, value)
        words = str(refused.value)
        assert re.search("expected|pass|nearest|there are|there is no|Kafka has no", words), words
        shown = {"limits": "Fetch", "settings": "num_partitions", "apis": ""}.get(name, name)
        assert shown in words or "API has the name" in words or "error" in words, words
        assert name not in NOT_SHOWN or not NOT_SHOWN[name].search(words), words


def test_every_argument_is_in_the_table_and_every_call_is_checked() -> None:
    assert {name for _, _, name in CASES} == WRONG.keys()
    assert [f.__qualname__ for _, _, f in public_calls() if not hasattr(f, "__wrapped__")] == []


def test_a_call_with_an_argument_without_a_rule_cannot_be_declared() -> None:
    with pytest.raises(LookupError, match="has the argument colour: give it a rule in RULES"):

        @checked
        def paint(self: object, colour: str) -> None: ...


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda broker: broker.fail("Produce", 1, topics="x"),
            "fail(topics='x'): no such argument; is topic meant? there are api, code, times, message, delay, t",
        ),
        (
            lambda broker: broker.fail("Produce", 1, times="2"),
            "fail(times='2'): expected a number of requests such as 2",
        ),
        (lambda broker: broker.fail("Produce"), "fail() lacks code: expected an error of Kafka's such as 'NOT_ENOUGH"),
        (lambda broker: broker.fail("Produce", 1, 2), "fail(2): expected it by name: times="),
        (
            lambda broker: broker.fail("Produce", 1, api="Fetch"),
            "fail(api='Fetch'): expected one api; 'Produce' is already set",
        ),
        (lambda broker: broker.advance("1d"), "advance(by='1d'): expected a timedelta such as timedelta(days=1), or"),
        (
            lambda broker: broker.limit_versions(Fetch=4),
            "limit_versions(Fetch=4): expected two versions such as (4, 11)",
        ),
        (lambda broker: broker.intercept("Metadata", 5), "intercept(function=5): expected a function of a Request"),
        (
            lambda broker: WRONGLY[Broker](properties={"num.partitions": 3, "log.dirs": "/secret"}),
            "Broker(properties={'num.partitions': 3}): expected texts by Kafka's names, as in {'num.partitions': '3'}",
        ),
        (lambda broker: WRONGLY[Broker](3), "Broker(3): pass settings by name, as in num_partitions=3"),
        (
            lambda broker: WRONGLY[Broker](broker_rack=None),
            "Broker(broker_rack=None): expected a text, a number, True or False",
        ),
        (lambda broker: WRONGLY[Cluster]("3"), "Cluster(brokers='3'): expected a number of brokers such as 3"),
        (lambda broker: broker.requests.of("Prodcue"), "no API has the name 'Prodcue'; the nearest is 'Produce'"),
    ],
)
def test_misuse_is_named_with_what_is_right(call: Callable[[Broker], object], words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        call(made(Broker))
    assert words in str(refused.value)


async def test_a_call_that_waits_is_checked_before_it_is_awaited() -> None:
    with pytest.raises(TypeError, match=r"advance\(by='1d'\)"):
        _ = made(AsyncBroker).advance("1d")


@pytest.mark.parametrize(
    "call",
    [
        lambda broker: broker.fail(None, "NOT_ENOUGH_REPLICAS", times=None, message=None, topic=None),
        lambda broker: broker.fail(
            (name for name in ("Produce", "fetch")), 6, times=2, delay=0.5, topic="t", partition=1
        ),
        lambda broker: broker.limit_versions(Fetch=[4, 11], Produce=None),
        lambda broker: broker.intercept("Metadata", lambda _request: None),
        lambda broker: broker.delay(["Fetch", "Produce"], 1),
        lambda broker: broker.requests.of("produce", "FetchRequest"),
        lambda broker: broker.client_settings(),
        lambda broker: Cluster(brokers=1, racks=("a",), log_retention_ms=-1)._finalizer(),
    ],
)
def test_right_arguments_are_taken(call: Callable[[Broker], object]) -> None:
    broker = made(Broker)
    call(broker)
    broker.limit_versions()
    broker.clear_faults()
    assert broker.requests.dropped == 0
