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
from typing import Any

import pytest

from pybroker.client import ClientError
from pybroker.testing import Broker
from tests.support.every_client import (
    CLIENTS,
    NEEDS_A_BROKER,
    awaited,
    call,
    is_async,
    kinds,
    methods,
    parameters,
)

pytestmark = pytest.mark.process

WITHIN = 60
SKIPPED = {
    (
        "Producer",
        "AsyncProducer",
    ): "a wrong type and a wrong time are judged by the engine: tests/unit/client/producing/test_producer.py",
}
CHECKED = sorted(kind for kind in CLIENTS if not any(kind.split()[0] in kinds_ for kinds_ in SKIPPED))
"""The clients whose arguments are compared with their annotations."""
RAW = re.compile(r"has no attribute|not iterable|not subscriptable|unsupported operand|takes \d+ positional|NoneType")
"""What Python reports of a value that nothing has checked."""


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
    assert {kind.split()[0] for kind in CLIENTS} == set(kinds())
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
from tests.support.every_client import CLIENTS, call, methods

kind, servers = json.loads(sys.argv[1])
for method in methods(kind):
    made = CLIENTS[kind](servers)
    if method != "close":
        threading.Thread(target=call, args=(made, kind, method), daemon=True).start()
print("leaves", flush=True)
"""


LEAVES_A_LOOP = """
import asyncio, contextlib, json, sys, threading
from pybroker.client import ClientError
from tests.support.every_client import CLIENTS, awaited, call, methods

kind, servers = json.loads(sys.argv[1])

async def one(made, method):
    # On a slow machine a call reaches its timeout before the interpreter exits, and asyncio logs its error.
    with contextlib.suppress(ClientError):
        return await awaited(call(made, kind, method))

async def all_of_them():
    for method in methods(kind):
        clients.append(CLIENTS[kind](servers))
        if method != "close":
            calls.append(asyncio.ensure_future(one(clients[-1], method)))
    done, _ = await asyncio.wait(calls, timeout=0.1)
    for call_ in done:
        call_.exception()

clients, calls = [], []
"""
STANDS_STILL = "its loop stands still"
ENDS = {
    "its loop has ended": "asyncio.run(all_of_them())",
    STANDS_STILL: "loop = asyncio.new_event_loop()\nloop.run_until_complete(all_of_them())",
    "its loop runs in a thread": """
begun = threading.Event()

async def all_and_on():
    await all_of_them()
    begun.set()
    await asyncio.Event().wait()

threading.Thread(target=asyncio.run, args=(all_and_on(),), daemon=True).start()
begun.wait()
""",
}
"""Where an asyncio client is when the interpreter exits."""


def leaves(program: str, kind: str, servers: str) -> str:
    """Run a program that exits with open clients, and expect it to exit well; what it has logged."""
    left = subprocess.run(
        [sys.executable, "-c", program, json.dumps([kind, servers])],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert (left.returncode, left.stdout) == (0, "leaves\n"), left.stderr
    return left.stderr


@pytest.mark.parametrize("kind", sorted(kind for kind in CLIENTS if not is_async(kind)))
def test_the_interpreter_exits_with_clients_that_are_open_and_calls_under_way(
    kind: str, silent: str, live: str
) -> None:
    assert "Fatal" not in leaves(LEAVES, kind, live if kind in NEEDS_A_BROKER else silent)


@pytest.mark.parametrize("where", ENDS)
@pytest.mark.parametrize("kind", sorted(kind for kind in CLIENTS if is_async(kind)))
def test_the_interpreter_exits_with_asyncio_clients_that_are_open_and_calls_under_way(
    kind: str, where: str, silent: str
) -> None:
    logged = leaves(f"{LEAVES_A_LOOP}\n{ENDS[where]}\nprint('leaves', flush=True)", kind, silent)
    assert "Fatal" not in logged
    if where != STANDS_STILL:  # asyncio logs each task of such a loop, which nobody can cancel any more.
        assert "Traceback" not in logged
