"""What a program's records go through before they are sent: serializers, headers, partitioners."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from pybroker.client.errors import SerializationError, SettingError
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker
from tests.support.batches import read_batches
from tests.support.scripted_broker import ScriptedBroker


def dump(value: object) -> bytes:
    return json.dumps(value).encode()


def test_serializers_make_bytes_of_keys_and_values_and_let_none_be() -> None:
    with ScriptedBroker() as broker:
        with Producer(broker.bootstrap_servers, key_serializer=str.encode, value_serializer=dump) as producer:
            producer.send("t", {"a": 1}, "k")
            producer.send("t", None, "k")
            producer.send("t", [2])
        batches = [batch for received in broker.received for batch in read_batches(received.raw)]
        assert [value for batch in batches for value in batch.values] == [b'{"a": 1}', None, b"[2]"]


@pytest.mark.parametrize(
    ("record", "error", "text"),
    [
        ({"value": object()}, SerializationError, r'topic "t": the value_serializer failed: TypeError: Object of type'),
        (
            {"value": 1, "key": 2},
            TypeError,
            r'topic "t": what the key_serializer returns must be bytes or None, not str',
        ),
        ({"value": 1, "headers": [("a", "b")]}, TypeError, r'the value of header "a" must be bytes or None, not str'),
        ({"value": 1, "headers": [("a",)]}, TypeError, r"header 0 is \('a',\), not a pair of a name and bytes or None"),
        ({"value": 1, "headers": {1: b""}}, TypeError, r"header 0 is \(1, b''\), not a pair"),
        ({"value": 1, "timestamp_ms": -5}, ValueError, "timestamp_ms=-5: must be at least 0, or None for now"),
    ],
)
def test_a_record_that_cannot_be_made_bytes_is_named_and_not_sent(
    record: dict[str, Any], error: type[Exception], text: str
) -> None:
    with ScriptedBroker() as broker:
        text_of: Any = str
        with Producer(broker.bootstrap_servers, key_serializer=text_of, value_serializer=dump) as producer:
            with pytest.raises(error, match=text) as raised:
                producer.send("t", **record)
            if error is SerializationError:
                assert isinstance(raised.value.__cause__, TypeError)
        assert broker.received == []


def test_text_without_a_serializer_is_refused_with_advice() -> None:
    with (
        Producer("127.0.0.1:1") as producer,
        pytest.raises(TypeError, match="value must be bytes or None, not str: encode it, or give a value_serializer"),
    ):
        producer.send("t", "text")  # type: ignore[arg-type]


def test_headers_may_be_a_dict_and_values_bytearrays() -> None:
    with ScriptedBroker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("t", bytearray(b"v"), headers={"a": b"1", "b": None})
        raw = broker.received[0].raw
        assert b"\x02v\x04\x02a\x021\x02b\x01" in raw


@pytest.fixture(scope="module")
def broker() -> Any:
    with Broker(num_partitions=4) as running:
        yield running


def places(broker: Broker, topic: str, keys: list[bytes | None], **arguments: Any) -> list[int]:
    with Producer(broker.bootstrap_servers, **arguments) as producer:
        return [delivery.result().partition for delivery in [producer.send(topic, b"v", key) for key in keys]]


def test_a_function_chooses_among_all_and_available_partitions(broker: Broker) -> None:
    requested: list[tuple[bytes | None, Sequence[int], Sequence[int]]] = []

    def last(key: bytes | None, partitions: Sequence[int], available: Sequence[int]) -> int:
        requested.append((key, partitions, available))
        return partitions[-1]

    assert places(broker, "chosen", [b"k", None], partitioner=last) == [3, 3]
    assert requested == [(b"k", [0, 1, 2, 3], [0, 1, 2, 3]), (None, [0, 1, 2, 3], [0, 1, 2, 3])]
    with Producer(broker.bootstrap_servers, partitioner=last) as producer:
        assert producer.send("chosen", b"v", partition=1).result().partition == 1


@pytest.mark.parametrize("chosen", [4, -1, "0", None])
def test_a_partition_that_is_none_is_refused(broker: Broker, chosen: Any) -> None:
    refused = pytest.raises(SerializationError, match=r"the partitioner returned .*, not a partition below 4")
    with Producer(broker.bootstrap_servers, partitioner=lambda *_: chosen) as producer, refused:
        producer.send("chosen", b"v")


def test_named_partitioners(broker: Broker) -> None:
    keys: list[bytes | None] = [b"a", b"b", b"longer key", b"\xff\x00"]
    crc = [zlib.crc32(key or b"") % 4 for key in keys]
    assert places(broker, "named", keys, partitioner="consistent") == crc
    assert places(broker, "named", keys, properties={"partitioner": "consistent_random"}) == crc
    turns = places(broker, "named", [b"same"] * 8, properties={"partitioner.class": "RoundRobinPartitioner"})
    assert sorted(turns) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(set(places(broker, "named", keys, properties={"partitioner.ignore.keys": "true"}))) == 1


def test_a_partitioner_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(SettingError, match=r"partitioner=DefaultPartitioner: must be .*RoundRobinPartitioner.*random"):
        Producer("127.0.0.1:1", partitioner="DefaultPartitioner")
    with pytest.raises(SettingError, match="partitioner=random: the constructor received another partitioner"):
        Producer("127.0.0.1:1", {"partitioner": "random"}, partitioner="murmur2")
