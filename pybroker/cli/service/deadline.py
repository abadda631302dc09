"""A stop that takes too long ends hard.

Owns the thread that counts the time: the loop may be what hangs. Must not know what a stop does.
"""

from __future__ import annotations

import logging
import os
import threading

log = logging.getLogger("pybroker")

DEADLINE_STATUS = 124
"""What the process ends with when its time is up, as with timeout(1)."""


def end_hard(status: int, why: str) -> None:
    """End this process at once, as a crash would, and say so."""
    log.error("%s: killing the process; the next start recovers the logs", why)
    logging.shutdown()
    os._exit(status)


def begin_deadline(seconds: float) -> threading.Timer | None:
    """End the process hard when `seconds` are over; None for 0, which is no deadline. Cancel what is returned."""
    if not seconds:
        return None
    timer = threading.Timer(seconds, end_hard, (DEADLINE_STATUS, f"the stop has taken {seconds:g} s"))
    timer.daemon = True
    timer.start()
    return timer
