"""Tests of `pybroker.net.events`."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.net.events import EventTable


class Rolled:
    """An event."""


class Closed:
    """Another event."""


def test_each_handler_of_an_events_class_is_called_in_the_order_of_registration() -> None:
    table, calls = EventTable(), list[tuple[str, Any]]()
    table.on(Rolled, lambda event: calls.append(("first", event)))
    table.on(Rolled, lambda event: calls.append(("second", event)))
    table.on(Closed, lambda event: calls.append(("other", event)))
    event: Any = Rolled()
    table.handle(event)
    assert calls == [("first", event), ("second", event)]


def test_an_event_without_a_handler_has_no_effect() -> None:
    table, calls = EventTable(), list[Any]()
    table.on(Closed, calls.append)
    event: Any = Rolled()
    table.handle(event)
    assert calls == []


def test_the_error_of_a_handler_is_raised() -> None:
    table = EventTable()
    table.on(Rolled, lambda _event: [][0])
    event: Any = Rolled()
    with pytest.raises(IndexError):
        table.handle(event)


def test_batches_begin_and_end_for_each_part() -> None:
    table, calls = EventTable(), list[str]()
    table.around_batches(lambda: calls.append("groups begin"), lambda: calls.append("groups end"))
    table.around_batches(lambda: calls.append("transactions begin"), lambda: calls.append("transactions end"))
    table.begin_batch()
    table.end_batch()
    assert calls == ["groups begin", "transactions begin", "groups end", "transactions end"]
