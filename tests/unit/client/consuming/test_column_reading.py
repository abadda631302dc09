"""Columns by a consumer: what a group has committed is what was handed out, also within a response."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from pybroker.client import Admin, AsyncConsumer, Consumer, NewTopic, Producer, RecordColumns, TopicPartition
from pybroker.client.errors import ClientError
from pybroker.testing import Broker

WITHIN = 60
RECORDS = 100
T0 = TopicPartition("t", 0)
SETTINGS = {"auto.offset.reset": "earliest", "enable.auto.commit": False}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1, 1), NewTopic("wide", 3, 1)])
            admin.wait_for_leaders("t")
            admin.wait_for_leaders("wide")
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(RECORDS):
                producer.send("t", b"%d" % number)
                producer.send("wide", b"%d" % number, partition=number % 3)
        yield broker.bootstrap_servers


def values(columns: RecordColumns | None) -> list[int]:
    assert columns is not None, f"nothing within {WITHIN} s"
    return [int(value) for value in columns.to_arrow().column("value").to_pylist()]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_continues_behind_the_rows_that_were_handed_out(servers: str, protocol: str) -> None:
    settings = {**SETTINGS, "group.id": f"columns-{protocol}", "group.protocol": protocol}
    with Consumer(servers, settings) as first:
        first.subscribe(["t"])
        assert values(first.take_columns(WITHIN, columns=["value"], max_rows=30)) == list(range(30))
        assert values(first.take_columns(WITHIN, columns=["value"], max_rows=10)) == list(range(30, 40))
        assert first.position(T0) == 40
        first.commit()
    with Consumer(servers, settings) as second:
        second.subscribe(["t"])
        assert values(second.take_columns(WITHIN, columns=["value"])) == list(range(40, RECORDS))
        assert second.take_columns(0.0) is None


def test_a_seek_and_a_pause_drop_the_rows_that_are_ready(servers: str) -> None:
    with Consumer(servers, SETTINGS) as consumer:
        consumer.assign([T0])
        assert values(consumer.take_columns(WITHIN, max_rows=5)) == [0, 1, 2, 3, 4]
        with pytest.raises(ClientError, match="rows buffered for take_columns cannot be read as records"):
            consumer.poll(0.0)
        consumer.seek(T0, 90)
        assert values(consumer.take_columns(WITHIN, max_rows=2)) == [90, 91]
        consumer.pause(T0)
        assert consumer.take_columns(0.0) is None
        assert consumer.position(T0) == 92
        consumer.resume(T0)
        assert [record.value for record in consumer.poll(WITHIN, 3)] == [b"92", b"93", b"94"]
        with pytest.raises(ClientError, match="records buffered for poll cannot be read as columns"):
            consumer.take_columns(0.0)


def test_rows_of_a_partition_that_was_given_up_are_not_handed_out(servers: str) -> None:
    with Consumer(servers, SETTINGS) as consumer:
        consumer.assign([T0])
        assert values(consumer.take_columns(WITHIN, max_rows=5)) == [0, 1, 2, 3, 4]
        consumer.assign([TopicPartition("wide", 1)])
        assert values(consumer.take_columns(WITHIN)) == list(range(1, RECORDS, 3))
        consumer.assign([T0])
        assert values(consumer.take_columns(WITHIN)) == list(range(RECORDS))


def test_columns_over_asyncio_hold_what_records_hold(servers: str) -> None:
    async def read() -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        async with AsyncConsumer(servers, {**SETTINGS, "group.id": "columns-async"}) as consumer:
            consumer.subscribe(["wide"])
            while len(found) < RECORDS:
                columns = await consumer.take_columns(WITHIN, columns=["partition", "offset", "value"], max_rows=7)
                assert columns is not None
                found += [tuple(row.values()) for row in columns.to_arrow().to_pylist()]
        return found

    found = asyncio.run(asyncio.wait_for(read(), WITHIN))
    with Consumer(servers, SETTINGS) as consumer:
        consumer.assign([TopicPartition("wide", index) for index in range(3)])
        expected: list[tuple[Any, ...]] = []
        while len(expected) < RECORDS:
            expected += [(r.partition, r.offset, r.value) for r in consumer.poll(WITHIN)]
    assert sorted(found) == sorted(expected)
