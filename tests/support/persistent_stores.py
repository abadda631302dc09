"""Stores of every kind over one task directory: random operations, restarts and what a store contains."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.serdes import STRING
from pybroker.streams.state import builders
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.state.outer_join import LeftOrRight, TimestampedKeyAndJoinSide
from pybroker.streams.state.store import StateStore
from pybroker.streams.windows import SessionWindow, Windowed
from tests.support.store_context import RecordingContext

KEYS = ("", "a", "aa", "ab", "b", "\x00", "c" * 40, "\x7f")
LONG_AGO = 400_000
"""Timestamps of a test are below this number, in milliseconds, so that several segments expire."""
RETENTION_MS = 100_000

BUILDERS: dict[str, StoreBuilder] = {
    "key-value": builders.persistent_key_value_store("s", STRING, STRING),
    "timestamped": builders.timestamped_key_value_store("s", STRING, STRING),
    "versioned": builders.versioned_key_value_store("s", RETENTION_MS, STRING, STRING),
    "window": builders.persistent_window_store("s", RETENTION_MS, 1_000, STRING, STRING),
    "timestamped window": builders.timestamped_window_store("s", RETENTION_MS, 1_000, STRING, STRING),
    "duplicates": builders.window_store("s", RETENTION_MS, 1_000, STRING, STRING, retain_duplicates=True),
    "window in time order": builders.window_store("s", RETENTION_MS, 1_000, STRING, STRING).with_time_order(),
    "session": builders.persistent_session_store("s", RETENTION_MS, STRING, STRING),
    "session in time order": builders.session_store("s", RETENTION_MS, STRING, STRING).with_time_order(),
    "outer join": builders.outer_join_store("s", STRING, STRING, STRING),
}


def opened(builder: StoreBuilder, directory: Path | None) -> tuple[Any, RecordingContext]:
    """Return an open store of a builder, and its context."""
    context = RecordingContext()
    context.state_directory = directory
    store = builder.build()
    store.init(context)
    return store, context


class Clock:
    """Timestamps that advance, and are late now and then."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._now = 0

    def next(self) -> int:
        self._now += self._dice.randrange(0, 3_000)
        return max(0, self._now - self._dice.choice((0, 0, 0, 500, 20_000, 150_000)))


Operation = Callable[[Any], Any]
"""Changes or reads a store, and returns what it has read."""


def random_operation(kind: str, dice: random.Random, clock: Clock) -> Operation:
    """Return an operation of a kind of store. It does the same each time that it is called."""
    key, other = dice.choice(KEYS), dice.choice(KEYS)
    value = None if dice.random() < 0.25 else str(dice.random())
    at, until = clock.next(), clock.next()
    reading = dice.random() < 0.4
    if kind == "key-value":
        return (lambda s: (s.get(key), list(s.range(key, other)))) if reading else (lambda s: s.put(key, value))
    if kind == "timestamped":
        stored = ValueAndTimestamp(value, at)
        return (lambda s: (s.get(key), list(s.reverse_all()))) if reading else (lambda s: s.put(key, stored))
    if kind == "versioned":
        return (lambda s: (s.get(key), s.get_as_of(key, at))) if reading else (lambda s: s.put(key, value, at))
    if kind == "outer join":
        side = TimestampedKeyAndJoinSide(key, at // 10_000, dice.random() < 0.5)
        joined: LeftOrRight[str, str] | None = None if value is None else LeftOrRight(value, side.is_left)
        return (lambda s: list(s.all())) if reading else (lambda s: s.put(side, joined))
    if kind.startswith("session"):
        session = Windowed(key, SessionWindow(min(at, until), max(at, until)))
        if not reading:
            return lambda s: s.put(session, value)
        return lambda s: (list(s.find_sessions(key, min(at, until), max(at, until))), list(s.fetch(key)))
    start = at // 1_000 * 1_000
    put = ValueAndTimestamp(value, at) if kind == "timestamped window" and value is not None else value
    if not reading:
        return lambda s: s.put(key, put, start)
    return lambda s: (s.fetch(key, start), list(s.fetch_range(key, 0, at)), list(s.backward_fetch_all(until, at)))


def contents(kind: str, store: Any) -> Any:
    """Return all that can be read from a store."""
    if kind == "versioned":
        return [[store.get(key), *(store.get_as_of(key, at) for at in range(0, LONG_AGO, 5_000))] for key in KEYS]
    if kind.startswith("session"):
        return [list(store.fetch(key)) for key in KEYS]
    return list(store.all())


def crash(store: StateStore) -> None:
    """Close the database of a store as the end of a process does: nothing is flushed or committed."""
    assert store.maps is not None
    store.maps.close()
