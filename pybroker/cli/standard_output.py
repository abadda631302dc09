"""Standard output that takes nothing any more: the reader of a pipe has gone, or a disk is full.

Owns how that is found out, and that the interpreter's own flush at the end of the process stays silent. Must not know
what a command writes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def flush() -> None:
    """Write what is buffered; raises OSError."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def write_line(line: str) -> OSError | None:
    """Write a line in one write and return None, or the error that loses it; later output is then discarded.

    `print` writes the line and its end apart where output is not buffered (PYTHONUNBUFFERED=1).
    """
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except OSError as error:
        abandon()
        return error
    return None


def says_full(error: OSError) -> bool:
    """Return whether an error is that of a write that found no room."""
    return error.errno in _NO_ROOM and error.filename is None


def has_failed() -> bool:
    """Return whether standard output is known to take nothing any more.

    Where it buffers, what is in the buffer fails again; where it does not, only the loss of a reader can be seen.
    """
    try:
        flush()
    except OSError:
        return True
    return has_lost_its_reader()


def abandon() -> None:
    """Have everything go nowhere that is buffered, or written from now on."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


def has_lost_its_reader() -> bool:
    """Return whether it is a pipe or a socket whose other end is closed."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), select.POLLOUT)
    except (OSError, ValueError, AttributeError):
        return False
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
