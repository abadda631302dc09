"""Standard output that cannot be written any more: the reader of a pipe has closed it, or a disk is full.

Owns the detection of this state. It also discards later output, so that the interpreter's flush at the end of the
process reports no second error. Must not know the output.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys

_NO_CAPACITY = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def flush() -> None:
    """Write the buffered output. Raises OSError."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def write_line(line: str) -> OSError | None:
    """Write a line in one call and return None, or the error of the write; later output is then discarded.

    `print` writes the line and its end separately where output is not buffered (PYTHONUNBUFFERED=1).
    """
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except OSError as error:
        abandon()
        return error
    return None


def is_disk_full(error: OSError) -> bool:
    """Return whether an error reports a full disk."""
    return error.errno in _NO_CAPACITY and error.filename is None


def has_failed() -> bool:
    """Return whether standard output cannot be written. Writes the buffered output.

    After a failed write the text is still in the buffer, so this write fails too. Unbuffered output has no such text:
    only a closed pipe or socket is detected.
    """
    try:
        flush()
    except OSError:
        return True
    return has_lost_its_reader()


def abandon() -> None:
    """Discard all buffered output, and all later output."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


def has_lost_its_reader() -> bool:
    """Return whether standard output is a pipe or a socket whose other end is closed."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), select.POLLOUT)
    except (OSError, ValueError, AttributeError):
        return False
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
