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


SLICE_US = 1_000


def take_slice() -> None:
    """Give the calling thread a slice of `SLICE_US`; for a process that is the broker's own."""
    try:
        set_thread_slice(SLICE_US)
    except OSError as error:
        log.info("a slice of %d µs for the thread of Python has no effect: %s", SLICE_US, error.strerror)
