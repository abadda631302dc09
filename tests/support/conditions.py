"""Waiting for a condition with a deadline. The error describes the condition that was not met."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TICK_SECONDS = 0.005


def wait_until(condition: Callable[[], T], *, within: float, what: str | Callable[[], str]) -> T:
    """Return the first true value of `condition`, asked again and again for `within` seconds.

    Raises AssertionError naming `what` after that; where it is a function, what it says then. Meant for facts that
    nothing announces (a file, a counter of the kernel); where something can be waited on (a pipe, a process, a socket),
    wait on that.
    """
    deadline = time.monotonic() + within
    tick = threading.Event()
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"after {within} s still not: {what if isinstance(what, str) else what()}")
        tick.wait(TICK_SECONDS)
    return value
