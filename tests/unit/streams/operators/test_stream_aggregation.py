"""Aggregations of grouped streams without windows."""

from pybroker.streams.operators.stream_aggregation import StreamAggregate, StreamReduce
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state.builders import timestamped_key_value_store
from tests.support.streams import MemoryTask, OperatorChain, run


def summed() -> StreamAggregate:
    return StreamAggregate(timestamped_key_value_store("sums"), lambda: 0, lambda _key, value, total: total + value)


def test_aggregate_has_the_largest_timestamp_of_its_records() -> None:
    chain = run(summed(), [("a", 1, 10), ("a", 2, 5), ("b", 7, 6), ("a", 3, 20)])
    assert chain.changes() == [("a", 1, None, 10), ("a", 3, None, 10), ("b", 7, None, 6), ("a", 6, None, 20)]
    assert chain.dropped == []


def test_first_change_has_the_initial_aggregate_as_old_value() -> None:
    table = summed()
    table.enable_sending_old_values(False)
    assert run(table, [("a", 1, 10), ("a", 2, 11)]).changes() == [("a", 1, 0, 10), ("a", 3, 1, 11)]


def test_records_without_key_or_value_are_dropped() -> None:
    chain = run(summed(), [(None, 1, 10), ("a", None, 11)])
    assert chain.changes() == []
    assert chain.dropped == ["null key or value", "null key or value"]


def test_change_has_the_headers_of_the_record() -> None:
    chain = OperatorChain(summed())
    chain.pipe("a", 1, 10, (("trace", b"1"),))
    assert chain.records()[0].headers == (("trace", b"1"),)


def test_aggregate_of_none_deletes_the_key() -> None:
    table = StreamAggregate(timestamped_key_value_store("last"), lambda: 0, lambda _key, value, _last: value or None)
    chain = run(table, [("a", 5, 1), ("a", 0, 2)])
    assert chain.changes() == [("a", 5, None, 1), ("a", None, None, 2)]
    assert chain.getter(table.view()).get("a") is None


def test_reduce_starts_with_the_first_value() -> None:
    table = StreamReduce(timestamped_key_value_store("products"), lambda product, value: product * value)
    table.enable_sending_old_values(False)
    chain = run(table, [("a", 2, 10), ("a", 3, 8), (None, 1, 9), ("a", 4, 12)])
    assert chain.changes() == [("a", 2, None, 10), ("a", 6, 2, 10), ("a", 24, 6, 12)]
    assert chain.getter(table.view()).get("a") == ValueAndTimestamp(24, 12)


def test_cache_forwards_the_last_update_of_a_key_when_it_is_flushed() -> None:
    table = StreamAggregate(
        timestamped_key_value_store("sums").with_caching(True), lambda: 0, lambda _key, value, total: total + value
    )
    table.enable_sending_old_values(False)
    chain = OperatorChain(table, task=MemoryTask(cache_bytes=1_000_000))
    for value, timestamp in ((1, 10), (2, 30), (3, 20)):
        chain.pipe("a", value, timestamp)
    assert chain.changes() == []
    chain.flush()
    assert chain.changes() == [("a", 6, None, 30)]
    chain.pipe("a", 4, 31)
    chain.flush()
    assert chain.changes() == [("a", 10, 6, 31)]
