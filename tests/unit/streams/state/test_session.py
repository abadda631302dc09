"""The session store: bytes of the changelog, searches, retention and cache."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.streams.records import Change, Record
from pybroker.streams.state import builders
from pybroker.streams.state.session import SessionStore
from pybroker.streams.windows import SessionWindow, Windowed
from tests.support.store_context import RecordingContext, replay


def opened(
    context: RecordingContext, retention_ms: int = 1000, caching: bool = False, time_order: bool = False
) -> SessionStore[str, str]:
    builder = builders.session_store("s", retention_ms).with_caching(caching)
    store = (builder.with_time_order() if time_order else builder).build()
    assert isinstance(store, SessionStore)
    store.init(context)
    return store


def session(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, SessionWindow(start, end))


def test_changelog_key_is_key_end_and_start() -> None:
    context = RecordingContext()
    store = opened(context)
    context.at(9)
    store.put(session("ab", 1, 258), "v")
    store.remove(session("ab", 1, 258))
    key = b"ab" + b"\0\0\0\0\0\0\1\2" + b"\0\0\0\0\0\0\0\1"
    assert context.logged == [(key, b"v", 9, ()), (key, None, 9, ())]


@pytest.mark.parametrize("caching", [False, True])
def test_find_sessions_returns_sessions_that_overlap_the_range_by_end(caching: bool) -> None:
    store = opened(RecordingContext(100_000), caching=caching)
    for start, end in [(0, 10), (5, 30), (20, 25), (40, 50)]:
        store.put(session("k", start, end), f"{start}")
    store.put(session("k2", 0, 30), "other")
    assert [key for key, _ in store.find_sessions("k", 11, 20)] == [session("k", 20, 25), session("k", 5, 30)]
    assert [key for key, _ in store.backward_find_sessions("k", 11, 20)] == [session("k", 5, 30), session("k", 20, 25)]
    assert [value for _, value in store.fetch("k")] == ["0", "20", "5", "40"]
    assert store.fetch_session("k", 5, 30) == "5"
    assert store.fetch_session("k", 5, 31) is None
    assert [key for key, _ in store.find_sessions_between("k", "k2", 30, 10)] == [
        session("k", 5, 30), session("k2", 0, 30),
    ]  # fmt: skip
    assert len(list(store.fetch_keys(None, None))) == 5


def test_a_session_is_readable_while_its_end_is_younger_than_the_retention() -> None:
    store = opened(RecordingContext(), retention_ms=100)
    store.put(session("k", 0, 0), "a")
    store.put(session("k", 1, 1), "b")
    store.put(session("k", 100, 100), "c")
    assert [value for _, value in store.fetch("k")] == ["b", "c"]
    assert store.fetch_session("k", 0, 0) is None


def test_find_all_sessions_iterates_by_end_start_and_key_and_ignores_strict_retention() -> None:
    store = opened(RecordingContext(), retention_ms=100, time_order=True)
    for key, start, end in [("b", 0, 5), ("a", 0, 5), ("a", 2, 5), ("c", 1, 3), ("a", 100, 150)]:
        store.put(session(key, start, end), key)
    assert [key for key, _ in store.find_all_sessions(3, 5)] == [
        session("c", 1, 3), session("a", 0, 5), session("b", 0, 5), session("a", 2, 5),
    ]  # fmt: skip
    store.remove(session("a", 0, 5))
    assert len(list(store.find_all_sessions(0, 200))) == 4
    with pytest.raises(NotImplementedError, match="no time order"):
        opened(RecordingContext()).find_all_sessions(0, 1)


def test_cached_sessions_are_flushed_with_old_values_and_skip_unknown_deletes() -> None:
    context = RecordingContext(100_000)
    store = opened(context, caching=True)
    flushed: list[Record[Any, Change[Any]]] = []
    assert store.set_flush_listener(flushed.append, True)
    store.put(session("k", 0, 0), "1")
    store.flush()
    store.remove(session("k", 0, 0))
    store.put(session("k", 0, 5), "2")
    store.put(session("k", 0, 3), "x")
    store.remove(session("k", 0, 3))
    assert [key for key, _ in store.fetch("k")] == [session("k", 0, 5)]
    store.flush()
    assert [(record.key, record.value) for record in flushed] == [
        (session("k", 0, 0), Change("1", None)),
        (session("k", 0, 0), Change(None, "1")),
        (session("k", 0, 5), Change("2", None)),
    ]
    assert len(context.logged) == 3
    restored = opened(RecordingContext())
    replay(context, restored)
    assert list(restored.fetch("k")) == [(session("k", 0, 5), "2")]
