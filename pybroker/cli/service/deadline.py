"""A stop that takes too long ends hard.

Owns the thread with the timer, since the event loop itself may hang. Must not know the steps of a stop.
"""

from __future__ import annotations

import logging
import os
import threading

log = logging.getLogger("pybroker")

DEADLINE_STATUS = 124
"""Exit status after the deadline, as with timeout(1)."""


def end_hard(status: int, why: str) -> None:
    """End this process at once, as a crash would, with a message."""
    log.error("%s: killing the process; the next start recovers the logs", why)
    logging.shutdown()
    os._exit(status)


def begin_deadline(seconds: float) -> threading.Timer | None:
    """Return a started timer that ends the process after `seconds`; None for 0. The caller cancels it."""
    if not seconds:
        return None
    timer = threading.Timer(seconds, end_hard, (DEADLINE_STATUS, f"the stop has taken {seconds:g} s"))
    timer.daemon = True
    timer.start()
    return timer
