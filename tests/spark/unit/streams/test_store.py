"""The maps of a store over a map state of Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybroker_spark.streams.store import KeptChangelog, StateDatabase
from tests.support.streams_batches import DictRows

PREFIXES = (b"\x01", b"\x02\x00", b"\x02\x01")
KEYS = st.binary(max_size=2)
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(("put", "put", "put", "remove", "get", "range", "clear", "commit")),
        st.integers(0, len(PREFIXES) - 1),
        KEYS,
        KEYS,
        st.booleans(),
        st.booleans(),
    ),
    max_size=60,
)


@given(OPERATIONS)
def test_maps_equal_sorted_dicts_over_commits(operations: list[tuple[str, int, bytes, bytes, bool, bool]]) -> None:
    state = DictRows()
    database = StateDatabase(state)
    model: list[dict[bytes, bytes]] = [{} for _ in PREFIXES]
    for operation, at, key, other, forward, included in operations:
        rows, expected = database.map(PREFIXES[at]), model[at]
        match operation:
            case "put":
                rows.put(key, other)
                expected[key] = other
            case "remove":
                rows.remove(key)
                expected.pop(key, None)
            case "get":
                assert rows.get(key) == expected.get(key)
            case "range":
                found = sorted(k for k in expected if k >= key and (k < other or (included and k == other)))
                wanted = [(k, expected[k]) for k in (found if forward else reversed(found))]
                assert list(rows.range(key, other, forward, included)) == wanted
            case "clear":
                rows.clear()
                expected.clear()
            case "commit":
                database.commit(None)
                database = StateDatabase(state, database.live_prefixes)
    for prefix, expected in zip(PREFIXES, model, strict=True):
        assert dict(database.map(prefix).range(None, None)) == expected
        assert database.map(prefix).approximate_size == len(expected)


@given(OPERATIONS)
def test_prefixes_include_every_prefix_with_rows(
    operations: list[tuple[str, int, bytes, bytes, bool, bool]],
) -> None:
    database = StateDatabase(DictRows())
    for operation, at, key, other, _, _ in operations:
        rows = database.map(PREFIXES[at])
        if operation == "put":
            rows.put(key, other)
        elif operation == "clear":
            rows.clear()
    with_rows = [prefix for prefix in PREFIXES[1:] if database.map(prefix).approximate_size]
    assert set(with_rows) <= set(database.prefixes(b"\x02", 2)) <= set(PREFIXES[1:])


def test_key_is_read_once_and_written_once_in_a_batch() -> None:
    state = DictRows()
    state.rows[b"\x01a"] = b"0"
    database = StateDatabase(state)
    rows = database.map(b"\x01")
    for value in (b"1", b"2", b"3"):
        assert rows.get(b"a") is not None
        assert rows.get(b"b") is None
        rows.put(b"a", value)
    assert dict(state.calls) == {"get": 2}
    database.commit(None)
    assert dict(state.calls) == {"get": 2, "update": 1}
    assert state.rows == {b"\x01a": b"3"}


def test_first_range_loads_the_state_once() -> None:
    state = DictRows()
    state.rows |= {b"\x01" + bytes([number]): b"x" for number in range(100)}
    rows = StateDatabase(state).map(b"\x01")
    for _ in range(3):
        assert [key for key, _ in rows.range(b"\x05", b"\x07")] == [b"\x05", b"\x06", b"\x07"]
    assert rows.get(b"\x08") == b"x"
    assert dict(state.calls) == {"iterate": 1}


def test_changelog_of_a_buffer_keeps_the_last_record_of_each_key() -> None:
    state = DictRows()
    changelog = KeptChangelog(state)
    changelog.log(b"a", b"1", (("v", b"\x03"),))
    changelog.log(b"b", b"2", (("v", None), ("w", b"")))
    changelog.log(b"a", None, ())
    changelog.commit()
    assert list(KeptChangelog(state).records()) == [(b"b", b"2", (("v", None), ("w", b"")))]
