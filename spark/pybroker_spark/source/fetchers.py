"""The native fetchers of one worker process, kept from task to task.

Owns who has which fetcher. Spark uses its Python workers again, so a micro-batch finds the connections of the last one.
A fetcher that is lent has one borrower; one whose borrower failed is closed, not kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeAlias

from pybroker.client import ColumnFetcher

_DEFAULTS: Final[dict[str, str]] = {
    # What is read was seen by the plan, so that no Fetch waits but the one after the last record, which would hold up
    # the next task's first on the same connection.
    "fetch.max.wait.ms": "10",
    "client.id": "pybroker-spark",
}
_DECIDED: Final[dict[str, str]] = {
    # A missing offset is an error to judge here, by failOnDataLoss.
    "auto.offset.reset": "none",
}
_KEPT_AT_MOST: Final = 4

_Key: TypeAlias = tuple[int, str, tuple[tuple[str, str], ...]]
_kept: Final[list[tuple[_Key, ColumnFetcher]]] = []
"""Idle ones with what they are for, the longest idle first. The process is part of it: a fork has no I/O thread."""


@contextmanager
def lent(bootstrap_servers: str, properties: Mapping[str, str]) -> Iterator[ColumnFetcher]:
    """A fetcher to assign partitions to; at the end it is kept without any."""
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
