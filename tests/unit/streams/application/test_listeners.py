from __future__ import annotations

from typing import Any

import pytest

from pybroker.streams import State, UncaughtResponse
from pybroker.streams.application.listeners import Listeners


def _fails(*_arguments: Any) -> Any:
    raise ValueError("a bug of the listener")


def test_a_state_listener_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    listeners = Listeners("app")
    listeners.state = _fails
    listeners.report_state(State.RUNNING, State.REBALANCING)
    assert "The state listener of application app failed at RUNNING" in caplog.text


def test_a_handler_that_fails_shuts_down_the_client(caplog: pytest.LogCaptureFixture) -> None:
    listeners = Listeners("app")
    listeners.uncaught = _fails
    assert listeners.decide(RuntimeError()) is UncaughtResponse.SHUTDOWN_CLIENT
    assert "a bug of the listener" in caplog.text


def test_a_handler_without_a_decision_shuts_down_the_client(caplog: pytest.LogCaptureFixture) -> None:
    listeners = Listeners("app")
    listeners.uncaught = lambda _error: None  # type: ignore[assignment, return-value]
    assert listeners.decide(RuntimeError()) is UncaughtResponse.SHUTDOWN_CLIENT
    assert "returned None: expected an UncaughtResponse" in caplog.text
