"""Interactive queries: read-only access to the local stores of all threads of an application (KIP-67).

A query holds the lock of each thread in turn, so that it reads a store between two records. Ranges are read whole
before the call returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pybroker.streams.errors import InvalidStateStoreError
from pybroker.streams.records import ValueAndTimestamp

Located = Callable[[], list[tuple[threading.RLock, Any]]]
"""Returns the local stores of a name, each with the lock of its thread."""

SINGLE = frozenset({"get", "get_as_of", "fetch_session"})
RANGES = frozenset(
    {
        "range",
        "reverse_range",
        "all",
        "reverse_all",
        "prefix_scan",
        "fetch_range",
        "backward_fetch_range",
        "fetch_keys",
        "backward_fetch_keys",
        "fetch_all",
        "backward_fetch_all",
        "backward_all",
        "backward_fetch",
        "find_sessions",
        "backward_find_sessions",
        "find_sessions_between",
        "backward_find_sessions_between",
    }
)


class QueryableStore:
    """The stores of one name, one of each local task, as one store. Only reading methods exist.

    Methods that return one value return the first that a store has. Methods that return several return a list: the
    entries of one store after those of another, each in the order of the store.
    """

    def __init__(self, name: str, located: Located, *, timestamped: bool = False) -> None:
        """`timestamped`: return values of timestamped stores with their timestamps, as `ValueAndTimestamp`."""
        self.name = name
        self._located = located
        self._timestamped = timestamped

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """Return a reading method of the store.

        Raises:
            InvalidStateStoreError: stores of this type do not have the method, or it would change the store.
        """
        if method.startswith("__"):
            raise AttributeError(method)
        if method in SINGLE or method in RANGES or method == "fetch":
            return lambda *arguments: self._read(method, arguments)
        raise InvalidStateStoreError(
            f"store {self.name!r} has no query {method!r}: expected one of {', '.join(sorted(SINGLE | RANGES))}"
        )

    @property
    def approximate_num_entries(self) -> int:
        """The number of entries in all local stores of this name."""
        total = 0
        for lock, store in self._located():
            with lock:
                total += store.approximate_num_entries
        return total

    def _read(self, method: str, arguments: tuple[Any, ...]) -> Any:
        entries: list[Any] = []
        is_list = method in RANGES
        for lock, store in self._located():
            with lock:
                if not store.is_open:
                    raise InvalidStateStoreError(f"store {self.name!r} is closed: its task has moved. Query again")
                query = getattr(store, method, None)
                if query is None:
                    raise InvalidStateStoreError(f"store {self.name!r} is a {type(store).__name__}: it has no {method}")
                found = query(*arguments)
                if is_list or hasattr(found, "__next__"):
                    is_list = True
                    entries.extend(found)
                elif found is not None:
                    return self._plain(found)
        return [(key, self._plain(value)) for key, value in entries] if is_list else None

    def _plain(self, value: Any) -> Any:
        return value.value if isinstance(value, ValueAndTimestamp) and not self._timestamped else value
