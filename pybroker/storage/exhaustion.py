"""What the process or the system has run out of: descriptors, memory, mappings. The disk is not to blame.

Owns which errors of the system mean that, and the words that name the limit behind them. Must not know what was being
done: the caller that was refused tries again, or says so.
"""

from __future__ import annotations

import errno
import resource
from pathlib import Path

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
_MAPPINGS = Path("/proc/sys/vm/max_map_count")


def is_exhaustion(error: object) -> bool:
    """Return whether an operation failed for want of a descriptor or of memory: the same one may succeed later."""
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


def limits() -> str:
    """Return the limits that may be reached and how they are raised, in one sentence."""
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
