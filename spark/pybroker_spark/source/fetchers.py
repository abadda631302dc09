"""The native fetchers of one worker process, reused by later tasks.

Owns the assignment of fetchers to tasks. Spark reuses its Python workers, so a micro-batch reuses the connections of
the last one. A fetcher has one borrower at a time, and is closed if the borrower fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeAlias

from pybroker.client import ColumnFetcher

_DEFAULTS: Final[dict[str, str]] = {
    # The plan's end offsets exist, so only the Fetch after the last record waits. A long wait would delay the next
    # task's first Fetch on the same connection.
    "fetch.max.wait.ms": "10",
    "client.id": "pybroker-spark",
}
_DECIDED: Final[dict[str, str]] = {
    # A missing offset is an error that this package handles by failOnDataLoss.
    "auto.offset.reset": "none",
}
_KEPT_AT_MOST: Final = 4

_Key: TypeAlias = tuple[int, str, tuple[tuple[str, str], ...]]
_kept: Final[list[tuple[_Key, ColumnFetcher]]] = []
"""Idle fetchers with their purpose, the longest idle first. The key contains the process: a fork has no I/O thread."""


@contextmanager
def lent(bootstrap_servers: str, properties: Mapping[str, str]) -> Iterator[ColumnFetcher]:
    """Yield a fetcher for assigning partitions. It is kept without an assignment at the end."""
    key = (os.getpid(), bootstrap_servers, tuple(sorted(properties.items())))
    fetcher = _take(key) or ColumnFetcher(bootstrap_servers, {**_DEFAULTS, **properties, **_DECIDED})
    try:
        yield fetcher
        fetcher.assign([])
    except BaseException:
        fetcher.close()
        raise
    _kept.append((key, fetcher))
    if len(_kept) > _KEPT_AT_MOST:
        _, oldest = _kept.pop(0)
        oldest.close()


def _take(key: _Key) -> ColumnFetcher | None:
    for place, (kept_for, _) in enumerate(_kept):
        if kept_for == key:
            return _kept.pop(place)[1]
    return None
