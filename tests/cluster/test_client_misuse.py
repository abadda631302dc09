"""Every public method of every client against every misuse: it returns, raises a sentence, or ends at its timeout.

Classes and methods are found by inspection. A new class fails until `CLIENTS` makes one of it; a new method is in the
table by itself, with arguments that are made from its annotations.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import socket
import subprocess
import sys
import threading
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import SimpleNamespace, UnionType
from typing import Any

import pytest

from pybroker import client
from pybroker.client import ClientError, ConsumeTransformProduce, Producer
from pybroker.client.text import RecordFormat
from pybroker.testing import Broker

pytestmark = pytest.mark.process

WITHIN = 60
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


def _copier(servers: str) -> ConsumeTransformProduce:
    return ConsumeTransformProduce(
        servers, ["t"], lambda _: [], group_id="copier", transactional_id="copier", producer={"max.block.ms": 60_000}
    )


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
}
NEEDS_A_BROKER = {"ConsumeTransformProduce": "its constructor initializes transactions"}
SKIPPED = {
    (
        "Producer",
        "AsyncProducer",
    ): "a wrong type and a wrong time are judged by the engine: tests/unit/client/test_producer.py",
}
CHECKED = sorted(set(CLIENTS) - {kind for kinds_ in SKIPPED for kind in kinds_})
"""The clients whose arguments are compared with their annotations."""
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
"""What `Producer` inherits of the engine for load generators and `AsyncProducer`: native calls without annotations."""
VALUES: dict[str, Any] = {
    "timeout_s": 0.1,
    "timeout_ms": BRIEF_MS,
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
"""Arguments by name, where an annotation does not show a value that can be sent."""
RAW = re.compile(r"has no attribute|not iterable|not subscriptable|unsupported operand|takes \d+ positional|NoneType")
"""What Python reports of a value that nothing has checked."""


def kinds() -> list[str]:
    """The classes of `pybroker.client` that are closed."""
    return [n for n in client.__all__ if inspect.isclass(o := getattr(client, n)) and hasattr(o, "close")]


def methods(kind: str) -> list[str]:
    """The public methods of a class, but for class methods and those of the engine."""
    cls = getattr(client, kind)
    found = [n for n in dir(cls) if not n.startswith("_") and inspect.isroutine(getattr(cls, n))]
    return [n for n in found if not inspect.ismethod(getattr(cls, n)) and (kind != "Producer" or n not in ENGINE)]


def is_async(kind: str) -> bool:
    return inspect.iscoroutinefunction(getattr(client, kind).close)


def parameters(kind: str, method: str) -> dict[str, tuple[Any, bool]]:
    """The parameters of a method: annotation, and whether a value is required."""
    function = inspect.unwrap(getattr(getattr(client, kind), method))
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
    """The annotations of a function's parameters."""
    written = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    return typing.get_type_hints(SimpleNamespace(__annotations__=written), function.__globals__)


def value_of(hint: Any, name: str = "") -> Any:
    """A value that fits an annotation."""
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
    """Arguments by which a call is right: those that are required, and brief times."""
    return {
        name: value_of(hint, name)
        for name, (hint, required) in parameters(kind, method).items()
        if required or name in ("timeout_s", "timeout_ms", "stop")
    }


def call(made: Any, kind: str, method: str, changed: Mapping[str, Any] | None = None) -> Any:
    """Call a method; the coroutine of an asyncio client."""
    given = {**arguments(kind, method), **(changed or {})}
    function = inspect.unwrap(getattr(getattr(client, kind), method))
    try:
        varied = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_POSITIONAL]
    except ValueError:
        varied = []
    further = [given.pop(name) for name in varied if name in given]
    return getattr(made, method)(*further, **given)


def fault(error: BaseException | None) -> str | None:
    """What is wrong with an outcome; None for a return and for an error that is a sentence."""
    if error is None:
        return None
    text = str(error)
    if isinstance(error, ClientError | ValueError | TypeError) and len(text.split()) > 3 and not RAW.search(text):
        return None
    return f"{type(error).__name__}: {text}"


def run(make: Callable[[], Any], use: Callable[[Any], Any]) -> Future[Any]:
    """Make and use an asyncio client in one loop, or a blocking one in this thread; the outcome."""
    outcome: Future[Any] = Future()
    try:
        made = make()
        if inspect.iscoroutinefunction(made.close):

            async def in_loop() -> Any:
                return await asyncio.wait_for(use(made), WITHIN)

            outcome.set_result(asyncio.run(in_loop()))
        else:
            outcome.set_result(use(made))
    except BaseException as error:  # noqa: BLE001 (it is what the test is about)
        outcome.set_exception(error)
    return outcome


async def awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


@pytest.fixture(scope="module")
def live() -> Iterator[str]:
    with Broker(auto_create_topics_enable=True) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """A listener that accepts connections and sends nothing, as a broker that stands still."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


@pytest.fixture
def dead(request: pytest.FixtureRequest, live: str) -> str:
    """A server that refuses connections, or the broker for those that need one to be made."""
    return live if request.node.callspec.params["kind"] in NEEDS_A_BROKER else "127.0.0.1:1"


def faults_of(outcomes: Mapping[str, Future[Any]]) -> dict[str, str]:
    done, late = wait(outcomes.values(), timeout=WITHIN)
    found = {name: fault(outcome.exception()) for name, outcome in outcomes.items() if outcome in done}
    late_ones = {name: "does not end" for name, outcome in outcomes.items() if outcome in late}
    return {name: text for name, text in {**found, **late_ones}.items() if text is not None}


def in_threads(threads: ThreadPoolExecutor, kind: str, servers: str, use: Callable[[Any, str], Any]) -> dict[str, str]:
    """Use a client of its own for each method, and close it; the faults by method."""

    def one(method: str) -> Any:
        made: list[Any] = []

        def keep() -> Any:
            made.append(CLIENTS[kind](servers))
            return made[0]

        async def use_async(opened: Any) -> None:
            try:
                await use(opened, method)
            finally:
                await opened.close()

        def use_blocking(opened: Any) -> None:
            try:
                use(opened, method)
            finally:
                opened.close()

        return run(keep, use_async if is_async(kind) else use_blocking).result()

    return faults_of({method: threads.submit(one, method) for method in methods(kind)})


def test_every_client_is_in_the_table() -> None:
    assert sorted(CLIENTS) == sorted(kinds())
    assert all(len(methods(kind)) >= 3 for kind in kinds())


@pytest.mark.parametrize("kind", sorted(CLIENTS))
def test_a_dead_broker(kind: str, dead: str, threads: ThreadPoolExecutor) -> None:
    if is_async(kind):

        async def use_async(made: Any, method: str) -> None:
            await awaited(call(made, kind, method))

        assert in_threads(threads, kind, dead, use_async) == {}
    else:
        assert in_threads(threads, kind, dead, lambda made, method: call(made, kind, method)) == {}


@pytest.mark.parametrize("kind", sorted(CLIENTS))
def test_two_threads_or_tasks_at_once(kind: str, dead: str, threads: ThreadPoolExecutor) -> None:
    if is_async(kind):

        async def use_async(made: Any, method: str) -> None:
            async def once() -> Any:
                return await awaited(call(made, kind, method))

            outcomes = await asyncio.gather(once(), once(), return_exceptions=True)
            raise_first_fault(outcomes)

        assert in_threads(threads, kind, dead, use_async) == {}
        return

    def use(made: Any, method: str) -> None:
        begin = threading.Barrier(2)

        def once() -> Any:
            begin.wait(WITHIN)
            return call(made, kind, method)

        with ThreadPoolExecutor(2) as pair:
            both = [pair.submit(once) for _ in range(2)]
            raise_first_fault([future.exception(WITHIN) for future in both])

    with ThreadPoolExecutor(4) as few:
        assert in_threads(few, kind, dead, use) == {}


def raise_first_fault(outcomes: Iterable[Any]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and fault(outcome) is not None:
            raise outcome


@pytest.mark.parametrize("kind", sorted(CLIENTS))
def test_close_from_elsewhere_during_a_call(kind: str, silent: str, live: str, threads: ThreadPoolExecutor) -> None:
    servers = live if kind in NEEDS_A_BROKER else silent
    if is_async(kind):

        async def use_async(made: Any, method: str) -> None:
            calling = asyncio.ensure_future(awaited(call(made, kind, method)))
            await asyncio.wait([calling], timeout=0.05)
            await made.close()
            raise_first_fault(await asyncio.gather(calling, return_exceptions=True))

        assert in_threads(threads, kind, servers, use_async) == {}
        return

    def use(made: Any, method: str) -> None:
        with ThreadPoolExecutor(1) as other:
            calling = other.submit(call, made, kind, method)
            wait([calling], timeout=0.05)
            made.close()
            raise_first_fault([calling.exception(WITHIN)])

    assert in_threads(threads, kind, servers, use) == {}


@pytest.mark.parametrize("kind", sorted(CLIENTS))
def test_close_twice_and_every_call_after_close(kind: str, dead: str, threads: ThreadPoolExecutor) -> None:
    if is_async(kind):

        async def use_async(made: Any, method: str) -> None:
            await made.close()
            await made.close()
            await awaited(call(made, kind, method))

        found = in_threads(threads, kind, dead, use_async)
    else:

        def use(made: Any, method: str) -> None:
            made.close()
            made.close()
            call(made, kind, method)

        found = in_threads(threads, kind, dead, use)
    assert found == {}


def refusals(made: Any, kind: str, method: str, wrong: Mapping[str, Any], expected: type[Exception]) -> list[str]:
    """The parameters of a method whose wrong value is accepted, or refused without naming it."""
    missed = []
    for name, value in wrong.items():
        try:
            result = call(made, kind, method, {name: value})
            if inspect.iscoroutine(result):
                asyncio.run(result)
            missed.append(f"{method}({name}={value!r}) is accepted")
        except Exception as error:  # noqa: BLE001 (it is what the test is about)
            if not isinstance(error, expected) or fault(error) is not None or name not in str(error):
                missed.append(f"{method}({name}={value!r}): {error!r}")
    return missed


class Wrong:
    """A value of no type that a client takes."""

    def __repr__(self) -> str:
        return "Wrong()"


def is_checkable(hint: Any) -> bool:
    return hint not in (Any, bool) and not isinstance(hint, typing.TypeVar) and not getattr(hint, "_is_protocol", False)


@pytest.mark.parametrize("kind", CHECKED)
def test_a_wrong_type(kind: str, dead: str) -> None:
    made, missed = CLIENTS[kind](dead), []
    for method in methods(kind):
        names = [name for name, (hint, _) in parameters(kind, method).items() if is_checkable(hint)]
        missed += refusals(made, kind, method, dict.fromkeys(names, Wrong()), TypeError)
    end(made)
    assert missed == []


@pytest.mark.parametrize("kind", CHECKED)
def test_nan_and_negative_times(kind: str, dead: str) -> None:
    made, missed = CLIENTS[kind](dead), []
    for method in methods(kind):
        times = [name for name in parameters(kind, method) if name in ("timeout_s", "timeout_ms")]
        missed += refusals(made, kind, method, dict.fromkeys(times, -1), ValueError)
        seconds = [name for name in times if name == "timeout_s"]
        missed += refusals(made, kind, method, dict.fromkeys(seconds, float("nan")), ValueError)
    end(made)
    assert missed == []


def end(made: Any) -> None:
    closing = made.close()
    if inspect.iscoroutine(closing):
        asyncio.run(closing)


LEAVES = """
import json, sys, threading
from tests.cluster.test_client_misuse import CLIENTS, call, methods

kind, servers = json.loads(sys.argv[1])
for method in methods(kind):
    made = CLIENTS[kind](servers)
    if method != "close":
        threading.Thread(target=call, args=(made, kind, method), daemon=True).start()
print("leaves", flush=True)
"""


@pytest.mark.parametrize("kind", sorted(kind for kind in CLIENTS if not is_async(kind)))
def test_the_interpreter_exits_with_clients_that_are_open_and_calls_under_way(
    kind: str, silent: str, live: str
) -> None:
    servers = live if kind in NEEDS_A_BROKER else silent
    left = subprocess.run(
        [sys.executable, "-c", LEAVES, json.dumps([kind, servers])],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert (left.returncode, left.stdout) == (0, "leaves\n"), left.stderr
    assert "Fatal" not in left.stderr
