"""Waiting for a condition with a deadline. The error describes the condition that was not met."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TICK_SECONDS = 0.005


def wait_until(condition: Callable[[], T], *, within: float, what: str | Callable[[], str]) -> T:
    """Poll `condition` for at most `within` seconds, and return its first true value.

    Raises AssertionError after that, with `what` or, if it is a function, its result. Only for state without
    notifications (a file, a counter of the kernel). Wait directly on a pipe, a process or a socket.
    """
    deadline = time.monotonic() + within
    tick = threading.Event()
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"after {within} s still not: {what if isinstance(what, str) else what()}")
        tick.wait(TICK_SECONDS)
    return value
