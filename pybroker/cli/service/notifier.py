"""What a service manager is notified of: readiness, a reload, the stop, and that the loop still runs (sd_notify(3)).

Owns the protocol: a datagram of `KEY=value` lines to the socket that NOTIFY_SOCKET names. Without that variable every
call does nothing. Nothing that a service manager does can keep a broker from running: what fails is not raised.
"""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

_MICROSECONDS = 1_000_000


class Notifier:
    """One process's way to its service manager."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._watchdog_s = _watchdog_seconds(environment)
        self._beat: asyncio.TimerHandle | None = None

    @property
    def is_there(self) -> bool:
        """Whether a service manager wants to be notified."""
        return bool(self._address)

    def ready(self, status: str) -> None:
        """Say that the service answers, and how it is."""
        self._send(f"READY=1\nMAINPID={os.getpid()}\nSTATUS={status}")

    def reloading(self) -> None:
        """Say that settings are read again; `ready` follows."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> None:
        """Say that the service ends, and why."""
        self._send(f"STOPPING=1\nSTATUS={status}")

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send a sign of life from the loop, twice in the time after which the manager takes it for dead."""
        if self._address and self._watchdog_s:
            self._send("WATCHDOG=1")
            self._beat = loop.call_later(self._watchdog_s / 2, self.watch, loop)

    def rest(self) -> None:
        """Send no more signs of life: the manager expects none of a service that stops."""
        if self._beat is not None:
            self._beat.cancel()

    def _send(self, state: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
                manager.setblocking(False)
                manager.sendto(state.encode(), self._address)
        except OSError:
            return


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """Return the time between two signs of life that the manager allows, 0 where it wants none of this process."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0
    text = environment.get("WATCHDOG_USEC", "0")
    return int(text) / _MICROSECONDS if text.isdecimal() else 0
