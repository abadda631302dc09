"""The pytest plugin: the fixtures `broker`, `async_broker`, `session_broker` and `topic`, and the mark `broker`.

Owns the fixtures, and the warning about faults that never happened. Loaded by pytest in every project that has pybroker
installed, so it imports the broker only when a test uses it.
"""

from __future__ import annotations

import itertools
import os
import re
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from pybroker.testing import made_faults

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pybroker.testing.async_broker import AsyncBroker
    from pybroker.testing.broker import Broker

# Tracebacks of failing fixtures do not contain these hooks.
__tracebackhide__ = True

_LONGEST_NAME = 200
"""Maximum length of a test's name in the name of its topic, out of Kafka's 249 characters."""
_numbers = itertools.count(1)


class UnfiredFaultWarning(pytest.PytestWarning):
    """A fault applied to no request, so the test did not test it."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers", "broker(**settings): settings of the fixtures `broker` and `async_broker`, underscores for dots"
    )


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker that runs for this test."""
    from pybroker.testing.broker import Broker

    with Broker(**_settings(request)) as running:
        yield running


@pytest.fixture
def async_broker(request: pytest.FixtureRequest) -> Iterator[AsyncBroker]:
    """A broker that runs for this test, for code in an event loop, whichever plugin runs that."""
    from pybroker.testing.async_broker import AsyncBroker

    running = AsyncBroker(**_settings(request))
    with running.broker:
        yield running


@pytest.fixture(scope="session")
def session_broker_settings() -> dict[str, Any]:
    """Settings of `session_broker`, as `Broker` takes them; a project returns others in its `conftest.py`."""
    return {}


@pytest.fixture(scope="session")
def session_broker(session_broker_settings: dict[str, Any]) -> Iterator[Broker]:
    """A broker that runs for all tests of this process. Faults of a test are removed at the end of the test."""
    from pybroker.testing.broker import Broker

    with Broker(**session_broker_settings) as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """The name of a new topic on the test's broker: `broker`, `async_broker`, or else `session_broker`."""
    from pybroker.client.administration.admin import Admin

    own = [name for name in ("broker", "async_broker") if name in request.fixturenames]
    running: Broker | AsyncBroker = request.getfixturevalue(own[0] if own else "session_broker")
    # Without dots, since Kafka rejects a.b beside a_b.
    name = f"{re.sub('[^a-zA-Z0-9_-]+', '-', request.node.name)[:_LONGEST_NAME].strip('-')}-{next(_numbers)}"
    with Admin(running.bootstrap_servers, running.client_properties()) as admin:
        admin.create_topics([name])
    return name


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Do not record faults of wider fixtures: they may apply to requests of later tests."""
    if fixturedef.scope == "function":
        return (yield)
    with made_faults.paused():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start to record a test's faults, before its fixtures."""
    made_faults.begin()
    if _misses_its_mark(item):
        text = f"{item.nodeid}: the mark `broker` has no effect on session_broker; session_broker_settings has"
        warnings.warn(pytest.PytestWarning(text), stacklevel=1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Warn of a passing test's faults that never applied, at the lines that created them."""
    result = yield
    for fault, filename, line in made_faults.end():
        if fault.never_happened:
            made = f"{fault!r}, made at {os.path.basename(filename)}:{line}"
            text = f"{made}, never happened; read its `fired` in a test where this is right"
            warnings.warn_explicit(UnfiredFaultWarning(text), None, filename, line)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Remove the test's faults from the broker that later tests share."""
    made_faults.end()
    shared = getattr(item, "funcargs", {}).get("session_broker")
    try:
        return (yield)
    finally:
        if shared is not None:
            shared.clear_faults()


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the settings of a test's marks. A test's marks override its class's, and these override its module's."""
    found: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("broker"))):
        if mark.args:
            raise pytest.UsageError(f"broker{mark.args}: pass settings by name, as in broker(num_partitions=3)")
        given, properties = dict(mark.kwargs), mark.kwargs.get("properties")
        if isinstance(properties, dict):
            for key in properties:
                found.pop(str(key).replace(".", "_"), None)
            given["properties"] = {**(found.get("properties") or {}), **properties}
        found |= given
    return found


def _misses_its_mark(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    own = [mark for mark in getattr(item, "own_markers", ()) if mark.name == "broker"]
    return bool(own) and "session_broker" in names and not {"broker", "async_broker"} & set(names)
