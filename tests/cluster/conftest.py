"""Broker processes on directories of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.processes import BrokerProcess


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Makes broker processes that are not started yet; all of them are ended with the test."""
    with ExitStack() as stack:

        def make(directory: Path = tmp_path / "data", **overrides: str) -> BrokerProcess:
            broker = BrokerProcess(directory, {key.replace("_", "."): value for key, value in overrides.items()})
            stack.push(broker)
            return broker

        yield make


@pytest.fixture
def broker(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A running broker with default settings."""
    return make_broker().start()
