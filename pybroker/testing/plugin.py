"""The pytest fixtures `broker` and `async_broker`: a fresh broker for each test that asks for one.

Owns the fixtures. Loaded by pytest in every project that has pybroker installed, so it imports the broker only when a
test uses it. `@pytest.mark.broker(num_partitions=3)` gives it settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.testing.async_broker import AsyncBroker
    from pybroker.testing.broker import Broker


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
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


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    mark = request.node.get_closest_marker("broker")
    if mark is not None and mark.args:
        raise pytest.UsageError(f"broker{mark.args}: settings are given by name, as in broker(num_partitions=3)")
    return dict(mark.kwargs) if mark else {}
