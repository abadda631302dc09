"""What a service manager is notified of: readiness, a reload, the stop, and that the loop still runs (sd_notify(3)).

Owns the protocol: a datagram of `KEY=value` lines to the socket of NOTIFY_SOCKET. Without that variable every call does
nothing. Errors are not raised, so that a service manager cannot stop a broker.
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
    """The connection of one process to its service manager."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._watchdog_s = _watchdog_seconds(environment)
        self._beat: asyncio.TimerHandle | None = None

    @property
    def is_there(self) -> bool:
        """Whether a service manager expects notifications."""
        return bool(self._address)

    def ready(self, status: str) -> None:
        """Notify that the service is ready, with its status."""
        self._send(f"READY=1\nMAINPID={os.getpid()}\nSTATUS={status}")

    def reloading(self) -> None:
        """Notify that settings are being reloaded; `ready` follows."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> None:
        """Notify that the service stops, and why."""
        self._send(f"STOPPING=1\nSTATUS={status}")

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send watchdog notifications from the loop, twice in each watchdog interval."""
        if self._address and self._watchdog_s:
            self._send("WATCHDOG=1")
            self._beat = loop.call_later(self._watchdog_s / 2, self.watch, loop)

    def rest(self) -> None:
        """Stop the watchdog notifications: the manager expects none while a service stops."""
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
    """Return the watchdog interval, 0 where the manager expects no notifications of this process."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0
    text = environment.get("WATCHDOG_USEC", "0")
    return int(text) / _MICROSECONDS if text.isdecimal() else 0
