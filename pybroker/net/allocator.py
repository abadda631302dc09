"""Settings of the C library's allocator, so that it returns large buffers to the system when they are freed.

Owns two thresholds of glibc's malloc. By default they are dynamic: the first freed large buffer raises both to its
size. Later buffers are then allocated from arenas, and the process keeps up to twice that size of free memory in each.
A request may have 100 MiB, so the memory of many large requests would be kept. With fixed thresholds, every large
buffer is returned to the system when it is freed. Must not know the users of buffers.

Source: mallopt(3), section M_MMAP_THRESHOLD.
"""

from __future__ import annotations

import ctypes
import logging

log = logging.getLogger("pybroker.net")

MAPPED_FROM_BYTES = 4 << 20
"""Buffers of at least this size are allocated by mmap. Most producers' batches are smaller."""
FREE_END_BYTES = 8 << 20
"""Maximum free memory at the end of an arena."""

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def fix_thresholds() -> None:
    """Set both thresholds.

    Called only in a process of its own, not by an embedded broker. Does nothing without glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library, without dynamic thresholds
        return
    if not (mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) and mallopt(_M_TRIM_THRESHOLD, FREE_END_BYTES)):
        log.warning("Failed to set malloc thresholds: freed large buffers may remain in the memory of this process")
