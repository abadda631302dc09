from __future__ import annotations

from typing import Any

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.net import network_threads
from pybroker.net.network_threads import serve_by_threads


class DataPlane:
    """Has three threads, and begins others until there are four."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 3
        monkeypatch.setattr(network_threads, "network_threads", lambda plane: plane.count)
        monkeypatch.setattr(network_threads, "set_network_threads", DataPlane.resize)

    def resize(self, count: int) -> None:
        self.count = min(count, 4)
        if count > 4:
            raise OSError("Resource temporarily unavailable")


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Any:
    return DataPlane(monkeypatch)


def test_a_changed_number_is_put_in_force_and_said(plane: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pybroker.net")
    for count in ("3", "2"):
        serve_by_threads(plane, BrokerConfig({"num.network.threads": count}))
    assert plane.count == 2
    assert caplog.messages == ["Resized network threads to 2 from 3"]


def test_threads_that_cannot_be_begun_leave_those_that_could(plane: Any, caplog: pytest.LogCaptureFixture) -> None:
    serve_by_threads(plane, BrokerConfig({"num.network.threads": "6"}))
    assert plane.count == 4
    assert caplog.messages == [
        "Failed to resize network threads to num.network.threads=6: Resource temporarily unavailable; keeping 4 threads"
    ]
