"""Suppressed updates of tables."""

from typing import Any

import pytest

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.suppress import TableSuppress
from pybroker.streams.operators.table import Table
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.operators.window_aggregation import StreamWindowAggregate
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.serdes import STRING, time_windowed
from pybroker.streams.state.builders import suppress_buffer, timestamped_key_value_store, timestamped_window_store
from pybroker.streams.suppressed import NO_LIMIT, BufferConfig, Suppressed
from pybroker.streams.windows import EmitStrategy, TimeWindow, TimeWindows, Windowed
from tests.support.streams import OperatorChain


def suppressed_table(suppressed: Suppressed) -> tuple[OperatorChain, TableSuppress]:
    source = TableSource(timestamped_key_value_store("source"), None)
    suppress = TableSuppress(suppressed, suppress_buffer("buffer"), Table(source, None))
    return OperatorChain(source, suppress), suppress


def piped(chain: OperatorChain, *events: tuple[Any, Any, int]) -> list[tuple[Any, Any, Any, int]]:
    for key, value, timestamp in events:
        chain.pipe(key, value, timestamp)
    return chain.changes()


def test_update_is_forwarded_once_the_time_limit_has_passed() -> None:
    chain, _suppress = suppressed_table(Suppressed.until_time_limit(10, BufferConfig.unbounded()))
    assert piped(chain, ("a", 1, 0), ("a", 2, 5), ("b", 3, 9)) == []
    assert piped(chain, ("c", 4, 10)) == [("a", 2, 1, 5)]
    assert piped(chain, ("a", None, 30)) == [("b", 3, None, 9), ("c", 4, None, 10)]
    assert piped(chain, ("d", 1, 40)) == [("a", None, 2, 30)]


def test_time_limit_of_zero_forwards_at_once() -> None:
    chain, _suppress = suppressed_table(Suppressed.until_time_limit(0, BufferConfig.unbounded()))
    assert piped(chain, ("a", 1, 5), ("a", None, 6)) == [("a", 1, None, 5), ("a", None, 1, 6)]


def test_full_buffer_forwards_the_oldest_records_early() -> None:
    chain, _suppress = suppressed_table(Suppressed.until_time_limit(1_000, BufferConfig.max_records(2)))
    assert piped(chain, ("a", 1, 7), ("b", 2, 5), ("c", 3, 6)) == [("b", 2, None, 5)]


def test_full_buffer_stops_the_program() -> None:
    buffer = BufferConfig.max_records(1).shut_down_when_full()
    chain, _suppress = suppressed_table(Suppressed.until_time_limit(1_000, buffer))
    with pytest.raises(StreamsError, match="node-1 is full: 2 records of at most 1"):
        piped(chain, ("a", 1, 7), ("b", 2, 5))


def test_forwarded_update_has_the_context_of_its_own_record() -> None:
    chain, _suppress = suppressed_table(Suppressed.until_time_limit(10, BufferConfig.unbounded()))
    chain.pipe("a", 1, 0, (("trace", b"1"),))
    chain.pipe("b", 1, 10, (("trace", b"2"),))
    assert [record.headers for record in chain.records()] == [(("trace", b"1"),)]


def test_getter_returns_the_value_before_the_buffered_update() -> None:
    chain, suppress = suppressed_table(Suppressed.until_time_limit(10, BufferConfig.unbounded()))
    piped(chain, ("a", 1, 0), ("a", 2, 20), ("b", 3, 30), ("a", 4, 31))
    getters = suppress.view()
    assert list(getters.store_names) == ["buffer", "source"]
    getter = chain.getter(getters)
    assert getter.get("a") == ValueAndTimestamp(2, -1)
    assert getter.get("b") is None
    assert getter.get("c") is None


def test_window_is_forwarded_when_it_closes() -> None:
    windows = TimeWindows.of_size_and_grace(10, 5)
    counted = StreamWindowAggregate(
        windows,
        timestamped_window_store("windows", 100_000, 10),
        EmitStrategy.ON_WINDOW_UPDATE,
        lambda: 0,
        lambda _key, _value, count: count + 1,
    )
    condition = Suppressed.until_window_closes(BufferConfig.unbounded()).with_grace(windows.grace_ms)
    buffer = suppress_buffer("buffer", key_serde=time_windowed(STRING, 10))
    chain = OperatorChain(counted, TableSuppress(condition, buffer, Table(counted, None)))
    assert piped(chain, ("a", 1, 3), ("a", 1, 12), ("a", 1, 8), ("a", 1, 14)) == []
    window = Windowed("a", TimeWindow(0, 10))
    assert [change[:2] for change in piped(chain, ("b", 1, 15))] == [(window, 2)]


def test_final_results_need_a_buffer_that_does_not_emit_early() -> None:
    with pytest.raises(ValueError, match="emits early"):
        Suppressed.until_window_closes(BufferConfig.max_bytes(1_000))


def test_limits_of_buffers() -> None:
    config = BufferConfig.max_records(3).with_max_bytes(100)
    assert (config.record_limit, config.byte_limit, config.emits_early) == (3, 100, True)
    unbounded = config.with_no_bound()
    assert (unbounded.record_limit, unbounded.byte_limit, unbounded.emits_early) == (NO_LIMIT, NO_LIMIT, False)
    assert not config.with_logging_disabled().logging
    assert config.with_logging_enabled({"retention.ms": "5"}).log_config == {"retention.ms": "5"}
