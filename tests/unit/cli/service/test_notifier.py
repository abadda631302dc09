from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.cli.service.notifier import Notifier


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60)
        yield listening


def test_a_manager_is_notified_of_each_state(manager: socket.socket) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    assert notifier.is_there
    notifier.ready("listening")
    assert manager.recv(1000).decode().splitlines() == ["READY=1", f"MAINPID={os.getpid()}", "STATUS=listening"]
    notifier.reloading()
    assert manager.recv(1000).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
    notifier.stopping("SIGTERM")
    assert manager.recv(1000) == b"STOPPING=1\nSTATUS=SIGTERM"


async def test_the_loop_gives_signs_of_life_until_it_rests(manager: socket.socket) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "2000"})
    notifier.watch(asyncio.get_running_loop())
    for _ in range(3):
        assert await asyncio.to_thread(manager.recv, 1000) == b"WATCHDOG=1"
    notifier.rest()


@pytest.mark.parametrize(
    "environment", [{}, {"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "5"}, {"WATCHDOG_PID": "1"}]
)
def test_without_a_manager_nothing_happens_and_nothing_fails(environment: dict[str, str]) -> None:
    notifier = Notifier(environment)
    notifier.ready("x")
    notifier.stopping("x")
    notifier.rest()
    assert notifier.is_there is ("NOTIFY_SOCKET" in environment)
