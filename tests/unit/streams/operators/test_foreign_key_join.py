"""Foreign-key joins. Bytes and results are those of Kafka's classes and of its TopologyTestDriver 4.4.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pybroker.streams.errors import SerializationError, StreamsError
from pybroker.streams.operators.foreign_key_join import (
    ForeignTableJoin,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
from pybroker.streams.operators.foreign_key_serdes import CombinedKeySchema, ForeignKeySerdes
from pybroker.streams.operators.foreign_key_values import (
    CombinedKey,
    Instruction,
    SubscriptionResponseWrapper,
    SubscriptionWrapper,
)
from pybroker.streams.operators.murmur3 import hash128
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.records import Change, Record
from pybroker.streams.serdes import BYTES, INT32, STRING, Serde
from pybroker.streams.state.builders import subscription_store, timestamped_key_value_store
from tests.support.stream_joins import JoinTask, Line, values_joined

HASH = bytes.fromhex("2e7425dec1f8bcdf51e014f04aa41568")
STRINGS = ForeignKeySerdes(STRING, STRING, STRING, STRING)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "9d2764a018e329428c3cf3b035938518"),
        (1, "bff2166f25d4e3caad76f90042c32eb7"),
        (2, "bcd4482b54b21ae4ff522487ce044fc6"),
        (7, "e2c12aaa37615c8d78e8fff449acd2e3"),
        (8, "5376fe5d8752a4802bcfb922970c534c"),
        (9, "b79cc91e67eb164f7285936d18b5c4c8"),
        (15, "8541440932df88a8133781906f758397"),
        (16, "3b1ca826ba2a8ab100ff368af7e15570"),
        (17, "14606ec89b0c68c720e38f08a941bbdf"),
        (31, "0fc8bff6b4d635a2db8b6c0ce90a3cd8"),
        (32, "271fc7adca25c66d69f499a2c53fd088"),
        (33, "c811ac0257c06b43de4815d1c281354e"),
        (100, "ac5e6f34f01858a4773258770366c397"),
    ],
)
def test_hash_equals_kafkas_for_every_size_of_the_last_block(size: int, expected: str) -> None:
    assert hash128(bytes((at * 37 + 200) % 256 for at in range(size))).hex() == expected


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        *[
            (SubscriptionWrapper(HASH, instruction, "pk", 7), f"010{instruction}{HASH.hex()}706b00000007")
            for instruction in Instruction
        ],
        (SubscriptionWrapper(None, Instruction.DELETE_KEY_AND_PROPAGATE, "pk", 0), "8101706b00000000"),
        (
            SubscriptionWrapper(HASH, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, "pk", None, 0),
            f"0003{HASH.hex()}706b",
        ),
    ],
)
def test_subscription_has_kafkas_bytes(subscription: SubscriptionWrapper, expected: str) -> None:
    data = STRINGS.subscription.to_bytes(subscription)
    assert data is not None
    assert data.hex() == expected
    assert STRINGS.subscription.from_bytes(data) == subscription


@pytest.mark.parametrize(
    ("stored_hash", "value", "expected"),
    [
        (HASH, "fv", f"00{HASH.hex()}6676"),
        (None, "fv", "806676"),
        (HASH, None, f"00{HASH.hex()}"),
        (None, None, "80"),
    ],
)
def test_response_has_kafkas_bytes_without_the_partition(stored_hash: bytes, value: str, expected: str) -> None:
    data = STRINGS.response.to_bytes(SubscriptionResponseWrapper(stored_hash, value, 7))
    assert data is not None
    assert data.hex() == expected
    assert STRINGS.response.from_bytes(data) == SubscriptionResponseWrapper(stored_hash, value, None)


@pytest.mark.parametrize("data", ["", "01", "0103aa", "0209706b00000007", "0302706b00000007", "8101"])
def test_invalid_subscription_raises_serialization_error(data: str) -> None:
    with pytest.raises(SerializationError):
        STRINGS.subscription.from_bytes(bytes.fromhex(data))


def test_combined_key_has_kafkas_bytes() -> None:
    schema = CombinedKeySchema(ForeignKeySerdes(STRING, INT32, STRING, STRING))
    assert schema.to_bytes(258, "pk").hex() == "0000000400000102706b"
    assert schema.prefix_bytes(258).hex() == "0000000400000102"
    assert schema.from_bytes(bytes.fromhex("0000000400000102706b")) == CombinedKey(258, "pk")
    with pytest.raises(SerializationError, match="invalid combined key"):
        schema.from_bytes(bytes.fromhex("000000040000"))


class ForeignKeyPipeline:
    """Both tables and all operators of a foreign-key join. `topics` has the bytes of subscriptions and responses."""

    def __init__(self, left: bool) -> None:
        self.task = task = JoinTask()
        self.topics: list[str] = []
        serdes = ForeignKeySerdes(None, None, None, None)
        schema = CombinedKeySchema(serdes)
        subscriptions = subscription_store("subscriptions", BYTES, serdes.subscription)
        tables = [TableSource(timestamped_key_value_store(name), name) for name in ("left", "right")]
        for table in tables:
            table.enable_sending_old_values(True)
            task.add_store(table.builder)
        response_join = task.node(ResponseJoin(tables[0].view(), serdes, values_joined, left))
        responses = self._topic(serdes.response, response_join.process)
        join = task.node(SubscriptionJoin(tables[1].view(), serdes), responses)
        receive = task.node(SubscriptionReceive(subscriptions, schema), join.process)
        foreign = task.node(ForeignTableJoin(subscriptions, schema), responses)
        send = task.node(
            SubscriptionSend(lambda _, value: None if value.startswith("_") else value[:1], serdes, left),
            self._topic(serdes.subscription, receive.process),
        )
        self.nodes = {"left": task.node(tables[0], send.process), "right": task.node(tables[1], foreign.process)}

    def _topic(
        self, serde: Serde[Any], receive: Callable[[Record[Any, Any]], None]
    ) -> Callable[[Record[Any, Any]], None]:
        def append(record: Record[Any, Any]) -> None:
            data = serde.to_bytes(record.value)
            assert data is not None
            self.topics.append(data.hex())
            receive(record.with_value(serde.from_bytes(data)))

        return append

    def play(self, *rows: tuple[str, Any, Any, int]) -> list[list[Line]]:
        return self.task.play(self.nodes, *rows)


def test_inner_join_emits_a_deletion_when_the_foreign_key_changes_or_is_removed() -> None:
    pipeline = ForeignKeyPipeline(left=False)
    results = pipeline.play(
        ("left", "a", "p1", 10),
        ("right", "p", "zz", 40),
        ("left", "a", "q2", 20),
        ("right", "q", "yy", 15),
        ("left", "a", "_", 50),
        ("left", "b", "p3", 5),
        ("left", "b", None, 60),
    )
    assert results == [
        [],
        [("a", "p1+zz", 40)],
        [("a", None, 20)],
        [("a", "q2+yy", 15)],
        [("a", None, 50)],
        [("b", "p3+zz", 40)],
        [("b", None, 60)],
    ]
    assert pipeline.task.dropped == ["null foreign key"]
    assert pipeline.topics == [
        "010332eb3e7d0c83980193a127c25e74c4df6100000000",
        "0032eb3e7d0c83980193a127c25e74c4df7a7a",
        "010064c982f3aae6942f7af0309605ffe2d76100000000",
        "010264c982f3aae6942f7af0309605ffe2d76100000000",
        "0064c982f3aae6942f7af0309605ffe2d7",
        "0064c982f3aae6942f7af0309605ffe2d77979",
        "01016841522ca48bcd0c4903722577b572566100000000",
        "006841522ca48bcd0c4903722577b57256",
        "010322d7c999b543117bdef526f1fe89493b6200000000",
        "0022d7c999b543117bdef526f1fe89493b7a7a",
        "81016200000000",
        "80",
    ]


def test_left_join_emits_a_result_for_every_left_value() -> None:
    pipeline = ForeignKeyPipeline(left=True)
    results = pipeline.play(
        ("left", "a", "p1", 10),
        ("right", "p", "zz", 40),
        ("left", "a", "q2", 20),
        ("left", "a", "_", 50),
        ("left", "a", None, 60),
    )
    assert results == [
        [("a", "p1+None", 10)],
        [("a", "p1+zz", 40)],
        [("a", "q2+None", 20)],
        [("a", "_+None", 50)],
        [("a", None, 60)],
    ]
    assert pipeline.topics[-4:] == [
        "01026841522ca48bcd0c4903722577b572566100000000",
        "006841522ca48bcd0c4903722577b57256",
        "81026100000000",
        "80",
    ]


def test_response_to_an_earlier_left_value_is_dropped() -> None:
    task = JoinTask()
    table = TableSource(timestamped_key_value_store("left"), "left")
    left = task.node(table, lambda _: None)
    node = task.node(ResponseJoin(table.view(), STRINGS, values_joined, False))
    task.pipe(left, ("a", "l1", 10))
    task.pipe(node, ("a", SubscriptionResponseWrapper(hash128(b"l0"), "r", None), 11))
    task.pipe(node, ("a", SubscriptionResponseWrapper(hash128(b"l1"), "r", None), 12))
    assert task.lines() == [("a", "l1+r", 12)]
    assert task.dropped == ["outdated response of a foreign-key join"]


def test_out_of_order_changes_of_versioned_tables_are_dropped() -> None:
    task = JoinTask()
    send = SubscriptionSend(lambda _, value: value, STRINGS, False)
    foreign = ForeignTableJoin(
        subscription_store("subscriptions", BYTES, STRINGS.subscription), CombinedKeySchema(STRINGS)
    )
    for supplier in (send, foreign):
        supplier.enable_versioned_semantics(True)
        task.pipe(task.node(supplier), ("a", Change("v", None, is_latest=False), 1))
    assert task.dropped == ["out-of-order record of a versioned table"] * 2


def test_subscription_without_a_primary_key_or_with_an_unknown_version_is_rejected() -> None:
    with pytest.raises(StreamsError, match="primary key"):
        SubscriptionWrapper(None, Instruction.DELETE_KEY_AND_PROPAGATE, None, 0)
    with pytest.raises(StreamsError, match="version 2"):
        SubscriptionWrapper(None, Instruction.DELETE_KEY_AND_PROPAGATE, "a", 0, 2)
