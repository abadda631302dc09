"""What a consumer makes of keys and values, and what it says of records that cannot be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, assert_type

import pytest

from pybroker.client import AsyncConsumer, Consumer, Fetcher, Producer, Record, TopicPartition
from pybroker.client.errors import DeserializationError, SettingError
from tests.support.scripted_broker import ScriptedBroker

PLACE = TopicPartition("t", 0)
VALUES = [b'{"n": 1}', None, b"[2]", b"broken", b"4", b"5"]


def consumer(broker: ScriptedBroker, **arguments: Any) -> Consumer:
    made = Consumer(broker.bootstrap_servers, {"auto.offset.reset": "earliest"}, **arguments)
    made.assign([PLACE])
    made.seek(PLACE, 0)
    return made


def filled(broker: ScriptedBroker) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for value in VALUES:
            producer.send("t", value, b"k")


def test_keys_and_values_are_what_the_functions_make_and_none_stays_none() -> None:
    with ScriptedBroker() as broker:
        filled(broker)
        with consumer(broker, key_deserializer=bytes.decode, value_deserializer=json.loads) as reading:
            records = reading.poll(60, 3)
    assert [(r.key, r.value, r.offset) for r in records] == [("k", {"n": 1}, 0), ("k", None, 1), ("k", [2], 2)]


def test_a_record_that_cannot_be_read_is_named_and_met_again_until_seek() -> None:
    with ScriptedBroker() as broker:
        filled(broker)
        with consumer(broker, value_deserializer=json.loads) as reading:
            assert [record.offset for record in reading.poll(60)] == [0, 1, 2]
            for _ in range(2):
                with pytest.raises(DeserializationError, match="partition 0 offset 3: the value_deserializer") as met:
                    reading.poll(60)
                assert (met.value.partition, met.value.offset) == (("t", 0), 3)
                assert isinstance(met.value.__cause__, json.JSONDecodeError)
                assert reading.position(PLACE) == 3
            reading.seek(PLACE, 4)
            assert [record.value for record in reading.poll(60)] == [4, 5]


def test_records_are_handed_out_in_pieces_without_the_loops_thread() -> None:
    with ScriptedBroker() as broker:
        filled(broker)
        with consumer(broker) as reading:
            pieces = [reading.poll(60, 1)[0].value for _ in VALUES]
            assert (pieces, reading.position(PLACE)) == (VALUES, 6)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(SettingError, match="value_deserializer='json': must be a function"):
        Consumer("127.0.0.1:1", value_deserializer="json")  # type: ignore[arg-type]


if TYPE_CHECKING:

    def check_types_of_records() -> None:
        """mypy knows the parts of records by the deserializers; without one they are bytes."""
        plain = Consumer("h:1").poll()[0]
        assert_type(plain.key, bytes | None)
        assert_type(Fetcher("h:1").poll()[0].value, bytes | None)
        lengths = Consumer("h:1", value_deserializer=len)
        assert_type(lengths.poll(), list[Record[bytes, int]])
        assert_type(next(lengths).value, int | None)
        texts = AsyncConsumer("h:1", key_deserializer=bytes.decode)
        assert_type(texts.poll_here(), list[Record[str, bytes]])
