"""Aggregations over sessions."""

from pybroker.streams.operators.session_aggregation import StreamSessionWindowAggregate
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state.builders import StoreBuilder, session_store
from pybroker.streams.windows import EmitStrategy, SessionWindow, SessionWindows, Windowed
from tests.support.streams import OperatorChain, run

UPDATE, CLOSE = EmitStrategy.ON_WINDOW_UPDATE, EmitStrategy.ON_WINDOW_CLOSE


def summed(gap_ms: int, grace_ms: int, emit: EmitStrategy = UPDATE) -> StreamSessionWindowAggregate:
    builder: StoreBuilder = session_store("sessions", 86_400_000)
    if emit is CLOSE:
        builder = builder.with_time_order()
    return StreamSessionWindowAggregate(
        SessionWindows.of_inactivity_gap_and_grace(gap_ms, grace_ms),
        builder,
        emit,
        lambda: 0,
        lambda _key, value, total: total + value,
        lambda _key, one, other: one + other,
    )


def at(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, SessionWindow(start, end))


def test_record_extends_the_session_within_the_gap() -> None:
    table = summed(5, 0)
    table.enable_sending_old_values(False)
    chain = run(table, [("a", 1, 10), ("a", 2, 15), ("a", 4, 21)])
    assert chain.changes() == [
        (at("a", 10, 10), 1, None, 10),
        (at("a", 10, 10), None, 1, 10),
        (at("a", 10, 15), 3, None, 15),
        (at("a", 21, 21), 4, None, 21),
    ]
    assert chain.getter(table.view()).get(at("a", 10, 15)) == ValueAndTimestamp(3, 15)
    assert chain.getter(table.view()).get(at("a", 10, 10)) is None


def test_record_merges_two_sessions() -> None:
    chain = run(summed(5, 100), [("a", 1, 10), ("a", 2, 20), ("b", 9, 15), ("a", 4, 15)])
    assert chain.changes()[3:] == [
        (at("a", 10, 10), None, None, 10),
        (at("a", 20, 20), None, None, 20),
        (at("a", 10, 20), 7, None, 20),
    ]


def test_second_record_at_the_same_time_updates_the_session() -> None:
    chain = run(summed(5, 0), [("a", 1, 10), ("a", 2, 10)])
    assert chain.changes() == [(at("a", 10, 10), 1, None, 10), (at("a", 10, 10), 3, None, 10)]


def test_record_of_a_closed_session_is_dropped() -> None:
    chain = run(summed(5, 10), [("a", 1, 100), ("a", 2, 85), ("b", 4, 84), (None, 1, 100)])
    assert [change[0] for change in chain.changes()] == [at("a", 100, 100), at("a", 85, 85)]
    assert len(chain.dropped) == 2
    assert "expired window [84, 84]" in chain.dropped[0]


def test_updates_have_no_headers() -> None:
    chain = OperatorChain(summed(5, 0))
    chain.pipe("a", 1, 10, (("trace", b"1"),))
    assert chain.records()[0].headers == ()


def test_final_result_is_emitted_when_the_session_closes() -> None:
    chain = OperatorChain(summed(5, 0, CLOSE))
    chain.pipe("a", 1, 10)
    chain.pipe("b", 2, 12)
    chain.pipe("a", 4, 15)
    chain.pipe("c", 8, 17)
    assert chain.changes() == []
    # The session of b ends at 12. It is closed when stream time minus the gap is later than 12.
    chain.pipe("c", 8, 18, (("trace", b"1"),))
    records = chain.records()
    assert [(r.key, r.value.new_value, r.timestamp, r.headers) for r in records] == [
        (at("b", 12, 12), 2, 12, (("trace", b"1"),))
    ]
    chain.pipe("c", 8, 30)
    assert chain.changes() == [(at("a", 10, 15), 5, None, 15), (at("c", 17, 18), 16, None, 18)]
