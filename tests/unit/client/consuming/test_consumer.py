"""Calls outside of the loop and before it has begun; batches of transactions, and such as cannot be read."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any, NoReturn

import pytest

from pybroker.client import AsyncConsumer, Consumer, TopicPartition
from pybroker.client.errors import ClientError, RecordError
from tests.support.batches import Batch, Record
from tests.support.scripted_broker import ScriptedBroker
from tests.support.transactions_in_a_log import overlapping

T = TopicPartition("t", 0)
COMMITTED = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
EARLIEST = {"auto.offset.reset": "earliest"}


def test_it_leaves_nothing_that_was_never_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    with Consumer("127.0.0.1:1") as consumer, warnings.catch_warnings():
        warnings.simplefilter("error")
        consumer.assign([TopicPartition("t", 0)])
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(0.0)
        gc.collect()
        assert consumer.poll(0.0) == [], "the next call is one of the program's, not of a callback"


def test_records_of_aborted_transactions_are_left_out_in_whatever_order_they_end() -> None:
    with ScriptedBroker() as broker:
        overlapping(broker)
        with Consumer(broker.bootstrap_servers, COMMITTED) as consumer:
            consumer.assign([T])
            assert [record.value for record in consumer.poll(60)] == [b"c"]


def test_a_batch_that_cannot_be_read_is_met_until_the_consumer_goes_elsewhere() -> None:
    with ScriptedBroker() as broker:
        for offset, crc in enumerate((None, None, 1, None)):
            broker.hold(offset, 1, Batch((Record(b"%d" % offset),), base_offset=offset, crc=crc).encode())
        with Consumer(broker.bootstrap_servers, EARLIEST) as consumer:
            consumer.assign([T])
            assert [record.value for record in consumer.poll(60)] == [b"0", b"1"]
            for _ in range(3):
                with pytest.raises(RecordError, match='topic "t" partition 0 offset 2: the batch\'s CRC'):
                    consumer.poll(60)
                assert consumer.position(T) == 2
            consumer.seek(T, 3)
            assert [record.value for record in consumer.poll(60)] == [b"3"]


def test_an_async_consumer_begins_in_an_event_loop() -> None:
    consumer = AsyncConsumer("127.0.0.1:1", {"group.id": "g"})
    with pytest.raises(
        ClientError, match="AsyncConsumer needs a running event loop: call it in a coroutine, or use Consumer"
    ):
        consumer.subscribe(["t"])
    asyncio.run(consumer.close())


def test_an_async_consumer_is_refused_in_another_loop_than_its_own() -> None:
    """It would wait there for what its own loop, which does not run, is to do."""
    consumer = AsyncConsumer("127.0.0.1:1")
    with asyncio.Runner() as own, asyncio.Runner() as other:
        assert own.run(consumer.poll(0.0)) == []
        with pytest.raises(ClientError, match="belongs to another event loop: create one for each loop"):
            other.run(consumer.poll(0.0))
        own.run(consumer.close())
