"""Ends producers that a program leaves open, at the end of the process or when they are garbage-collected.

Owns the wait at exit, which `exit.flush.timeout.ms` bounds, and the log message about lost records. A forked child
has no producers of its parent in the list of clients, so nothing happens there.
"""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pybroker.client.errors import ClientError
from pybroker.client.forking import registered

if TYPE_CHECKING:
    from pybroker.client import native

_log = logging.getLogger("pybroker.client")


def end(producer: native.Producer, kind: str, close: Callable[[], None]) -> None:
    """Call `close` for a producer that the program left open. Logs the number of lost records, and why."""
    before, error = _failed(producer), None
    try:
        close()
    except ClientError as failure:
        error = failure
    if lost := _failed(producer) - before:
        reason = "" if error is None else f": {error}"
        _log.warning("A %s was not closed: %d of its records were not delivered%s", kind, lost, reason)


def left_s(timeout_s: float, began: float) -> float:
    """Return the rest of a timeout that started at `began`."""
    return max(0.0, timeout_s - (time.monotonic() - began))


def _failed(producer: native.Producer) -> int:
    return sum(failed for *_, failed in producer.outcomes())


@atexit.register
def _end_all() -> None:
    """Close every producer while the interpreter still runs threads. All share one timeout."""
    began = time.monotonic()
    for client in registered():
        end_at_exit = getattr(client, "_end_at_exit", None)
        if end_at_exit is not None:
            end_at_exit(began)
