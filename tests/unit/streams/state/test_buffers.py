"""Buffers of suppress and of stream-table joins, and the store of outer joins: order, sizes, bytes of changelogs."""

from __future__ import annotations

from typing import Any

from pybroker.streams import serdes
from pybroker.streams.records import Change, Record, RecordContext, ValueAndTimestamp
from pybroker.streams.state import builders
from pybroker.streams.state.buffers import BufferValue, Eviction, pack_context
from pybroker.streams.state.join_buffer import JoinBuffer
from pybroker.streams.state.outer_join import LeftOrRight, OuterJoinStore, TimestampedKeyAndJoinSide
from pybroker.streams.state.suppress_buffer import SuppressBuffer
from pybroker.streams.windows import MAX_TIMESTAMP
from tests.support.store_context import RecordingContext, replay

CONTEXT = RecordContext(5, 7, 2, "in", (("k", b"v"), ("n", None)))
# Printed by ProcessorRecordContext.serialize of Kafka 4.4.0 for this context.
CONTEXT_BYTES = bytes.fromhex(
    "0000000000000005000000000000000700000002696e0000000200000002000000016b0000000176000000016effffffff"
)
PLAIN = RecordContext(1, 2, 0, "in")
PLAIN_BYTES = bytes.fromhex("00000000000000010000000000000002") + b"\0\0\0\2in" + bytes(4) + bytes(4)


def suppress(context: RecordingContext) -> SuppressBuffer[str, str]:
    store = builders.suppress_buffer("b", serdes.STRING, serdes.STRING).build()
    assert isinstance(store, SuppressBuffer)
    store.init(context)
    return store


def join(context: RecordingContext, grace_ms: int) -> JoinBuffer[str, str]:
    store = builders.join_buffer("b", grace_ms).build()
    assert isinstance(store, JoinBuffer)
    store.init(context)
    return store


def change(key: str, new: str | None, old: str | None = None) -> Record[str, Change[str]]:
    return Record(key, Change(new, old), 0)


def evict_all(store: Any) -> list[Eviction[Any, Any]]:
    evicted: list[Eviction[Any, Any]] = []
    store.evict_while(lambda: True, evicted.append)
    return evicted


def test_bytes_of_a_context_equal_kafkas() -> None:
    assert pack_context(CONTEXT) == CONTEXT_BYTES


def test_bytes_of_a_buffered_record_leave_out_an_old_value_equal_to_the_prior_value() -> None:
    value = BufferValue(b"p", b"p", b"new", CONTEXT)
    data = CONTEXT_BYTES + b"\0\0\0\1p" + b"\xff\xff\xff\xfe" + b"\0\0\0\3new"
    assert value.to_bytes() == data
    assert BufferValue.from_bytes(data + b"rest") == (value, b"rest")
    # 25 is ProcessorRecordContext.residentMemorySizeEstimate of Kafka 4.4.0.
    assert value.size == 25 + 1 + 3
    other = BufferValue(None, b"o", None, CONTEXT)
    assert other.to_bytes() == CONTEXT_BYTES + b"\xff\xff\xff\xff" + b"\0\0\0\1o" + b"\xff\xff\xff\xff"
    assert BufferValue.from_bytes(other.to_bytes())[0] == other


def test_suppress_keeps_the_place_and_the_prior_value_of_a_key() -> None:
    store = suppress(RecordingContext())
    assert store.min_timestamp == MAX_TIMESTAMP
    store.put(20, change("b", "1", "0"), PLAIN)
    store.put(10, change("a", "x"), PLAIN)
    store.put(30, change("b", "2", "1"), CONTEXT)
    assert (store.num_records, store.min_timestamp) == (2, 10)
    # 8 for the time, 1 for the key, 22 or 25 for the context, and the values.
    assert store.buffer_size == (8 + 1 + 22 + 1) + (8 + 1 + 25 + 3)
    assert store.prior_value_for_buffered("b") == (True, ValueAndTimestamp("0", -1))
    assert store.prior_value_for_buffered("a") == (True, None)
    assert store.prior_value_for_buffered("c") == (False, None)
    assert evict_all(store) == [
        Eviction("a", Change("x", None), PLAIN),
        Eviction("b", Change("2", "1"), CONTEXT),
    ]
    assert (store.num_records, store.buffer_size, store.min_timestamp) == (0, 0, MAX_TIMESTAMP)


def test_suppress_evicts_only_while_the_predicate_is_true() -> None:
    store = suppress(RecordingContext())
    for time in (30, 10, 20):
        store.put(time, change(str(time), "v"), PLAIN)
    evicted: list[Eviction[str, Change[str]]] = []
    store.evict_while(lambda: store.min_timestamp <= 20, evicted.append)
    assert [eviction.key for eviction in evicted] == ["10", "20"]
    assert evicted[0].record() == Record("10", Change("v", None), 1)


def test_suppress_logs_format_3_and_tombstones_when_the_task_commits() -> None:
    context = RecordingContext()
    store = suppress(context)
    store.put(9, change("k", "v"), PLAIN)
    assert context.logged == []
    store.flush()
    value = PLAIN_BYTES + b"\xff\xff\xff\xff" * 2 + b"\0\0\0\1v" + bytes(7) + b"\x09"
    assert context.logged == [(b"k", value, None, (("v", b"\3"),))]
    restored = suppress(RecordingContext())
    replay(context, restored)
    assert (restored.min_timestamp, restored.buffer_size) == (9, store.buffer_size)
    evict_all(store)
    store.flush()
    assert context.logged[1:] == [(b"k", None, None, ())]
    replay(context, restored)
    assert restored.num_records == 0


def test_join_buffer_evicts_records_whose_grace_has_passed_in_the_order_of_time() -> None:
    store = join(RecordingContext(), 10)
    assert store.put(0, Record("b", "1", 5), PLAIN)
    assert store.put(0, Record("a", "2", 5), PLAIN)
    assert store.put(0, Record("a", "3", 2), PLAIN)
    assert store.put(0, Record("c", "4", 15), PLAIN)
    assert not store.put(0, Record("c", "late", 4), PLAIN)
    assert (store.num_records, store.min_timestamp) == (4, 2)
    assert [(eviction.key, eviction.value) for eviction in evict_all(store)] == [("a", "3"), ("a", "2"), ("b", "1")]
    # 1 + 8 + 1 + 4 for the key, 22 for the context, 1 for the value.
    assert (store.num_records, store.buffer_size, store.min_timestamp) == (1, 37, 6)
    assert store.prior_value_for_buffered("c") == (False, None)


def test_join_buffer_logs_at_once_with_keys_that_begin_with_the_time() -> None:
    context = RecordingContext()
    store = join(context, 0)
    store.put(0, Record("k", "v", 1), PLAIN)
    evict_all(store)
    key = b"\0" + bytes(7) + b"\1" + b"k" + b"\0\0\0\1"
    value = PLAIN_BYTES + b"\xff\xff\xff\xff" * 2 + b"\0\0\0\1v" + bytes(8)
    assert context.logged == [(key, value, None, ()), (key, None, None, ())]
    del context.logged[1]
    restored = join(RecordingContext(), 0)
    replay(context, restored)
    assert evict_all(restored) == [Eviction("k", "v", PLAIN)]


def outer(context: RecordingContext) -> OuterJoinStore[str, str, int]:
    store = builders.outer_join_store("o", serdes.STRING, serdes.STRING, serdes.INT32).build()
    assert isinstance(store, OuterJoinStore)
    store.init(context)
    return store


def test_outer_join_store_appends_to_lists_and_logs_whole_lists() -> None:
    context = RecordingContext()
    store = outer(context)
    left = TimestampedKeyAndJoinSide("k", 258, True)
    context.at(4)
    store.put(left, LeftOrRight("ab", True))
    store.put(left, LeftOrRight("c", True))
    key = b"\0\0\0\0\0\0\1\2" + b"\1" + b"k"
    # The format of Kafka's ListSerializer for ByteArraySerializer, printed by Kafka 4.4.0 for "ab" and "c":
    # 01000000020000000261620000000163. Each element here begins with one byte for the side.
    assert context.logged == [
        (key, b"\1\0\0\0\1" + b"\0\0\0\3\1ab", 4, ()),
        (key, b"\1\0\0\0\2" + b"\0\0\0\3\1ab" + b"\0\0\0\2\1c", 4, ()),
    ]
    assert list(store.all()) == [(left, LeftOrRight("ab", True)), (left, LeftOrRight("c", True))]
    restored = outer(RecordingContext())
    replay(context, restored)
    assert len(list(restored.all())) == 2


def test_outer_join_store_iterates_by_time_then_right_before_left() -> None:
    store = outer(RecordingContext())
    keys = [
        TimestampedKeyAndJoinSide("a", 1, True),
        TimestampedKeyAndJoinSide("b", 0, True),
        TimestampedKeyAndJoinSide("z", 0, False),
    ]
    for key in keys:
        store.put(key, LeftOrRight("v", True) if key.is_left else LeftOrRight(7, False))
    assert [key for key, _ in store.all()] == [keys[2], keys[1], keys[0]]
    value = next(store.all())[1]
    assert (value.left, value.right) == (None, 7)


def test_outer_join_store_deletes_only_lists_that_exist() -> None:
    context = RecordingContext()
    store = outer(context)
    key = TimestampedKeyAndJoinSide("k", 0, False)
    store.put_if_absent(key, None)
    assert context.logged == []
    store.put(key, LeftOrRight(1, False))
    store.put_if_absent(key, None)
    assert context.logged[1][1] is None
    assert list(store.all()) == []
