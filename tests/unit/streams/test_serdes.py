"""Bytes of serdes, written out by hand from the classes of Kafka that they equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow
import pyarrow.ipc
import pytest

from pybroker.streams import (
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    JSON,
    MSGPACK,
    STRING,
    Change,
    Serde,
    Windowed,
    arrow,
    json,
    session_windowed,
    time_windowed,
)
from pybroker.streams.errors import SerializationError
from pybroker.streams.serdes import changed
from pybroker.streams.windows import SessionWindow, TimeWindow


@dataclass
class Order:
    amount: int


CASES: list[tuple[Any, Any, bytes]] = [
    (STRING, "é", b"\xc3\xa9"),
    (STRING, "", b""),
    (BYTES, b"\x00\xff", b"\x00\xff"),
    (INT32, -2, b"\xff\xff\xff\xfe"),
    (INT64, 258, b"\x00\x00\x00\x00\x00\x00\x01\x02"),
    (FLOAT64, 1.5, b"\x3f\xf8\x00\x00\x00\x00\x00\x00"),
    (JSON, {"a": [1, None]}, b'{"a":[1,null]}'),
    (MSGPACK, [1, "a"], b"\x92\x01\xa1a"),
    (json(Order), Order(3), b'{"amount":3}'),
    (time_windowed(STRING, 100), Windowed("k", TimeWindow(256, 356)), b"k\x00\x00\x00\x00\x00\x00\x01\x00"),
    (
        session_windowed(STRING),
        Windowed("k", SessionWindow(1, 2)),
        b"k\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01",
    ),
    (changed(STRING), Change("new", None), b"new\x01"),
    (changed(STRING), Change(None, "old"), b"old\x00"),
    (changed(STRING), Change("new", "old"), b"\x06newold\x02"),
    (changed(STRING), Change("n" * 64, "o"), b"\x80\x01" + b"n" * 64 + b"o\x02"),
]


@pytest.mark.parametrize(("serde", "value", "data"), CASES)
def test_bytes_of_a_serde(serde: Serde[Any], value: Any, data: bytes) -> None:
    assert serde.to_bytes(value) == data
    assert serde.from_bytes(data) == value


def test_none_stays_none() -> None:
    assert STRING.to_bytes(None) is None
    assert INT64.from_bytes(None) is None


@pytest.mark.parametrize(
    ("serde", "value"), [(STRING, 1), (BYTES, "a"), (INT32, 1 << 31), (INT64, "1"), (INT64, True), (FLOAT64, "1")]
)
def test_a_value_of_another_type_is_refused_by_name(serde: Serde[Any], value: Any) -> None:
    with pytest.raises(SerializationError, match=rf"serde '{serde.name}' cannot serialize {value!r}"):
        serde.to_bytes(value)


@pytest.mark.parametrize(
    ("serde", "data"),
    [(STRING, b"\xff"), (INT32, b"1"), (JSON, b"{"), (json(Order), b'{"amount":"x"}'), (changed(STRING), b"x\x07")],
)
def test_bytes_of_another_serde_are_refused_by_name(serde: Serde[Any], data: bytes) -> None:
    with pytest.raises(SerializationError, match=rf"serde '{serde.name}' cannot deserialize"):
        serde.from_bytes(data)


def test_arrow_tables_are_ipc_streams() -> None:
    batch = pyarrow.record_batch({"id": [1, 2], "name": ["tea", None]})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    serde = arrow()
    assert serde.from_bytes(sink.getvalue().to_pybytes()) == pyarrow.Table.from_batches([batch])
    for value in (batch, pyarrow.Table.from_batches([batch])):
        assert pyarrow.ipc.open_stream(serde.to_bytes(value)).read_all().to_pylist() == batch.to_pylist()
    with pytest.raises(SerializationError, match=r"'arrow' cannot serialize .* expected a pyarrow\.Table"):
        serde.to_bytes({"id": 1})
    with pytest.raises(SerializationError, match="'arrow' cannot deserialize"):
        serde.from_bytes(b"rubbish")
