"""The scheduler time slice of the thread that runs Python.

Owns the slice of this thread; the data plane's threads have theirs from its settings. The scheduler prefers threads
with shorter slices. Theirs are shorter than Python's, so they preempt Python. Python's is shorter than the system's
default, so Python preempts client processes. The CPU shares of all threads are unchanged.

Source: sched_setattr(2); docs/adr/0084-threads-of-records-are-let-in-first.md.
"""

from __future__ import annotations

import logging

from pybroker.net.native import set_thread_slice

log = logging.getLogger("pybroker.net")


SLICE_US = 1_000


def take_slice() -> None:
    """Set the calling thread's slice to `SLICE_US`. Called only in a process of its own, not by an embedded broker."""
    try:
        set_thread_slice(SLICE_US)
    except OSError as error:
        log.info("Failed to set a scheduler slice of %d µs for the Python thread: %s", SLICE_US, error.strerror)
