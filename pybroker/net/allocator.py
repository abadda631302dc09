"""The C library's allocator: what it gives back to the system at once.

Owns two thresholds of glibc's malloc. By default they move: the first large buffer that is freed raises both to its
size, so that later ones are cut from arenas, whose free ends (up to twice that size each) stay with the process. A
request may have 100 MiB, and what a crowd of such took would stay. Fixed thresholds send every large buffer back when
it is freed.
Must not know what the buffers are for.

Source: mallopt(3), section M_MMAP_THRESHOLD.
"""

from __future__ import annotations

import ctypes
import logging

log = logging.getLogger("pybroker.net")

MAPPED_FROM_BYTES = 4 << 20
"""Buffers from this size on are mapped by themselves. The batches that most producers send stay below."""
FREE_END_BYTES = 8 << 20
"""An arena keeps at most this much that is free at its end."""

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def fix_thresholds() -> None:
    """Fix both thresholds; for a process that is the broker's own. Without glibc there is nothing to fix."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library, whose thresholds do not move
        return
    if not (mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) and mallopt(_M_TRIM_THRESHOLD, FREE_END_BYTES)):
        log.warning("the allocator keeps its own thresholds: large buffers that were freed may stay with the broker")
