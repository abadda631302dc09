from __future__ import annotations

import errno
from typing import Any

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.net import listeners
from pybroker.net.listeners import BrokerListeners, ListenerSettings
from pybroker.net.tls import TlsListeners

MAP = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"}
A, B, C = "A://127.0.0.1:1", "B://127.0.0.1:2", "C://127.0.0.1:3"


class DataPlane:
    """Binds what is asked for, but port 3."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.in_use = True
        monkeypatch.setattr(listeners, "unlisten", DataPlane.unlisten)

    def listen(self, settings: ListenerSettings) -> int:
        if settings.port == 3 and self.in_use:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self.calls.append(f"+{settings.name}")
        return settings.port

    def unlisten(self, name: str) -> bool:
        self.calls.append(f"-{name}")
        return True


def config(*listeners: str) -> BrokerConfig:
    return BrokerConfig({"listeners": ",".join(listeners), **MAP})


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Any:
    return DataPlane(monkeypatch)


def test_listeners_follow_the_settings(plane: Any, caplog: pytest.LogCaptureFixture) -> None:
    opened = BrokerListeners(plane, config(A), TlsListeners({}))
    assert not opened.reconfigure(config(A))
    assert opened.reconfigure(config(A, B))
    assert [str(one) for one in opened.all] == [A, B]
    assert opened.reconfigure(config(A))
    assert [str(one) for one in opened.all] == [A]
    assert plane.calls == ["+A", "+B", "-B"]
    assert not opened.reconfigure(config("A://127.0.0.1:9"))
    assert "The changes of listener A need a restart" in caplog.text


def test_one_that_cannot_be_opened_is_said_and_tried_again(plane: Any, caplog: pytest.LogCaptureFixture) -> None:
    opened = BrokerListeners(plane, config(A), TlsListeners({}))
    assert not opened.reconfigure(config(A, C))
    assert "Failed to open listener C: cannot listen on C://127.0.0.1:3: the port is in use" in caplog.text
    plane.in_use = False
    assert opened.reconfigure(config(A, C))
    assert [one.name for one in opened.all] == ["A", "C"]
