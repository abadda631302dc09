"""How long the thread that runs Python has a processor before others that wait have their turn.

Owns one thread's slice; those of the data plane take theirs from its settings. Theirs is shorter: they are let in at
once where Python runs. Python's is shorter than the system's: it is let in where clients run. The shares of all stay
what they were.

Source: sched_setattr(2); docs/adr/0084-threads-of-records-are-let-in-first.md.
"""

from __future__ import annotations

import logging

from pybroker.net.native import set_thread_slice

log = logging.getLogger("pybroker.net")


def take_slice(us: int) -> None:
    """Give the calling thread a slice of so many µs, 0 for the system's; for a process that is the broker's own."""
    try:
        set_thread_slice(us)
    except OSError as error:
        log.info("control.thread.slice.us=%d has no effect: %s", us, error.strerror)
