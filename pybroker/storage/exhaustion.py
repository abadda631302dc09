"""Exhausted resources of the process or the system: descriptors, memory, mappings. These are no disk failures.

Owns which errors of the system indicate exhaustion, and the text that names the limits. Must not know the operation:
its caller retries or reports the error.
"""

from __future__ import annotations

import errno
import resource
from pathlib import Path

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
_MAPPINGS = Path("/proc/sys/vm/max_map_count")


def is_exhaustion(error: object) -> bool:
    """Return whether an operation failed for lack of a descriptor or of memory: a retry may succeed."""
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


def limits() -> str:
    """Return the limits that may be reached and how to raise them, in one sentence."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        mappings = f" and {int(_MAPPINGS.read_text())} mappings (vm.max_map_count)"
    except (OSError, ValueError):
        mappings = ""
    return (
        f"this process may have {_number(soft)} descriptors (RLIMIT_NOFILE, hard limit {_number(hard)}; "
        f"see ulimit -n){mappings} at a time"
    )


def _number(limit: int) -> str:
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit)
