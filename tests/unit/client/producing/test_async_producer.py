"""What the asyncio producer promises: order, waits without threads, nothing partial after a cancelled send."""

from __future__ import annotations

import asyncio
import sys
import threading

import polars as pl
import pyarrow as pa
import pytest

from pybroker.client.errors import (
    BrokerError,
    BufferFullError,
    ClientError,
    ClosedError,
    DeliveryError,
    RecordError,
    SerializationError,
    SettingError,
    UnreachableError,
)
from pybroker.client.producing.async_producer import AsyncProducer
from pybroker.client.producing.record_metadata import RecordMetadata
from tests.support.batches import read_batches
from tests.support.scripted_broker import HELD, ScriptedBroker

NOT_LEADER, TOO_LARGE = 6, 10
QUICK = {"linger.ms": 0, "retry.backoff.ms": 5, "reconnect.backoff.ms": 5}
TIGHT = {**QUICK, "buffer.memory": 2000, "batch.size": 1000}
"""Room for two batches, so that most sends wait."""


def values(broker: ScriptedBroker) -> list[bytes | None]:
    return [value for received in broker.received for batch in read_batches(received.raw) for value in batch.values]


async def others_have_run() -> None:
    """Return when every task that could run has run once."""
    loop = asyncio.get_running_loop()
    turn: asyncio.Future[None] = loop.create_future()
    loop.call_soon(turn.set_result, None)
    await turn


async def test_each_send_gives_a_future_of_its_fate() -> None:
    with ScriptedBroker([0, TOO_LARGE]) as broker:
        async with AsyncProducer(broker.bootstrap_servers, QUICK) as producer:
            assert (await (await producer.send("t", b"x"))).offset == 0
            with pytest.raises(BrokerError):
                await (await producer.send("t", b"y"))
            futures = [await producer.send("t", b"z") for _ in range(50)]
            written = await asyncio.gather(*futures)
            assert [w.offset for w in written] == list(range(1, 51))
            assert written[0] == RecordMetadata("t", 0, 1, written[0].timestamp_ms)


@pytest.mark.parametrize("settings", [QUICK, TIGHT], ids=["room", "full"])
async def test_gathered_sends_keep_the_order_of_their_calls(settings: dict[str, object]) -> None:
    sent = [b"%05d" % number for number in range(2000)]
    with ScriptedBroker() as broker:
        async with AsyncProducer(broker.bootstrap_servers, settings) as producer:
            futures = await asyncio.gather(*(producer.send("t", value) for value in sent))
            written = await asyncio.gather(*futures)
        assert values(broker) == sent
        assert [w.offset for w in written] == list(range(2000))


async def test_no_send_takes_a_thread() -> None:
    with ScriptedBroker() as broker:
        async with AsyncProducer(broker.bootstrap_servers, TIGHT) as producer:
            before = set(threading.enumerate())
            await asyncio.gather(*(producer.send("t", b"x" * 100) for _ in range(200)))
            assert {t.name for t in set(threading.enumerate()) - before if t not in broker._threads} == set()


async def test_a_send_that_is_cancelled_while_it_waits_sends_nothing_and_holds_nobody_up() -> None:
    with ScriptedBroker() as broker:
        broker.responds_produce.clear()
        async with AsyncProducer(broker.bootstrap_servers, TIGHT) as producer:
            await producer.send("t", b"0" * 600)
            await producer.send("t", b"1" * 600)
            waiting = [asyncio.create_task(producer.send("t", b"%d" % number * 600)) for number in range(2, 6)]
            await others_have_run()
            assert not any(task.done() for task in waiting)
            waiting[0].cancel()
            waiting[2].cancel()
            broker.responds_produce.set()
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(outcome) is asyncio.CancelledError for outcome in outcomes] == [True, False, True, False]
            await producer.flush()
        assert [value[:1] for value in values(broker) if value] == [b"0", b"1", b"3", b"5"]


async def test_a_buffer_that_stays_full_is_an_error_after_max_block_ms() -> None:
    settings = {**TIGHT, **HELD, "max.block.ms": 1000}
    with ScriptedBroker([NOT_LEADER]) as broker:
        producer = AsyncProducer(broker.bootstrap_servers, settings)
        first = [await producer.send("t", b"x" * 600) for _ in range(2)]
        waiting = [asyncio.create_task(producer.send("t", b"x" * 600)) for _ in range(3)]
        for task in waiting:
            with pytest.raises(BufferFullError, match=r"buffer.memory=2000 stayed full for max.block.ms=1000"):
                await task
        with pytest.raises(DeliveryError, match="2 batches still unacknowledged"):
            await producer.close(0)
        for future in first:
            with pytest.raises(ClosedError):
                await future


async def test_an_unknown_server_is_named_after_max_block_ms() -> None:
    async with AsyncProducer("127.0.0.1:1", {"max.block.ms": 50}) as producer:
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1 within 50 ms.*refused"):
            await producer.send("t", b"x")


async def test_closing_ends_the_sends_that_wait() -> None:
    settings = {**TIGHT, **HELD}
    with ScriptedBroker([NOT_LEADER]) as broker:
        producer = AsyncProducer(broker.bootstrap_servers, settings)
        held = [await producer.send("t", b"x" * 600) for _ in range(2)]
        waiting = asyncio.create_task(producer.send("t", b"x" * 600))
        await others_have_run()
        with pytest.raises(DeliveryError):
            await producer.close(0)
        with pytest.raises(ClosedError, match="the producer is closed"):
            await waiting
        with pytest.raises(ClosedError, match="the producer is closed"):
            await producer.send("t", b"x")
        assert [type(future.exception()) for future in held] == [ClosedError, ClosedError]


async def test_a_serializer_is_called_once_also_for_a_record_that_waits() -> None:
    calls: list[object] = []

    def serialize(value: object) -> bytes:
        calls.append(value)
        return str(value).encode() * 300

    with ScriptedBroker() as broker:
        async with AsyncProducer(broker.bootstrap_servers, TIGHT, value_serializer=serialize) as producer:
            await asyncio.gather(*(producer.send("t", number) for number in range(10)))
            await producer.flush()
        assert (calls, [value[:1] for value in values(broker) if value]) == (
            list(range(10)),
            [b"%d" % number for number in range(10)],
        )


async def test_a_failing_serializer_is_named_and_sends_nothing() -> None:
    with ScriptedBroker() as broker:
        async with AsyncProducer(broker.bootstrap_servers, key_serializer=str.encode) as producer:
            with pytest.raises(SerializationError, match=r'topic "t": the key_serializer failed: TypeError'):
                await producer.send("t", b"x", 7)
        assert broker.received == []


async def test_callbacks_are_called_on_the_loop_also_for_futures_that_were_cancelled() -> None:
    callback_calls: list[tuple[str, int, threading.Thread]] = []

    def callback(error: Exception | None, metadata: RecordMetadata) -> None:
        callback_calls.append((type(error).__name__, metadata.offset, threading.current_thread()))
        raise ValueError("callbacks may fail")

    with ScriptedBroker([0, TOO_LARGE]) as broker:
        async with AsyncProducer(broker.bootstrap_servers, QUICK, on_delivery=callback) as producer:
            first = await producer.send("t", b"x")
            first.cancel()
            await producer.flush()
            second = await producer.send("t", b"y")
            with pytest.raises(BrokerError):
                await second
        here = threading.current_thread()
        assert callback_calls == [("NoneType", 0, here), ("BrokerError", -1, here)]


def test_a_callback_that_ends_the_program_does_so_after_the_others() -> None:
    calls: list[int] = []

    def decided(error: Exception | None, metadata: RecordMetadata) -> None:
        calls.append(metadata.offset)
        if metadata.offset == 3:
            sys.exit("enough")

    async def run() -> None:
        with ScriptedBroker() as broker:
            async with AsyncProducer(broker.bootstrap_servers, {"linger.ms": 60_000}) as producer:
                for _ in range(10):
                    await producer.send("t", b"x", on_delivery=decided)
                await producer.flush()

    with pytest.raises(SystemExit, match="enough"):
        asyncio.run(run())
    assert calls == list(range(10))


def rows(*sent: bytes) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(sent, pa.binary())})


@pytest.mark.parametrize("form", ["batch", "table", "polars"])
async def test_rows_of_arrow_data_are_sent_and_awaited(form: str) -> None:
    sent = [b"%d" % number for number in range(300)]
    with ScriptedBroker() as broker:
        async with AsyncProducer(broker.bootstrap_servers, QUICK) as producer:
            data = rows(*sent)
            exports = {"batch": data, "table": pa.table(data), "polars": pl.DataFrame(pa.table(data))}
            delivery = await producer.send_columns(exports[form], topic="t")
            assert len(delivery) == 300
            assert await delivery.result() == 300
            assert delivery.done()
            nothing = await producer.send_columns(rows(), topic="t")
            assert (len(nothing), await nothing.result()) == (0, 0)
        assert values(broker) == sent


@pytest.mark.parametrize("settings", [QUICK, TIGHT], ids=["room", "full"])
async def test_gathered_batches_of_rows_keep_the_order_of_their_calls(settings: dict[str, object]) -> None:
    sent = [b"%04d" % number for number in range(1000)]
    with ScriptedBroker() as broker:
        async with AsyncProducer(broker.bootstrap_servers, settings) as producer:
            batches = [rows(*sent[at : at + 20]) for at in range(0, 1000, 20)]
            deliveries = await asyncio.gather(*(producer.send_columns(batch, topic="t") for batch in batches))
            assert await asyncio.gather(*(delivery.result() for delivery in deliveries)) == [20] * 50
        assert values(broker) == sent


async def test_rows_that_wait_for_memory_leave_the_loop_free_and_end_with_max_block_ms_or_a_close() -> None:
    settings = {**TIGHT, **HELD, "max.block.ms": 300}
    with ScriptedBroker([NOT_LEADER] * 9) as broker:
        producer = AsyncProducer(broker.bootstrap_servers, settings)
        with pytest.raises(BufferFullError, match=r"\d+ of 100 rows were sent"):
            await producer.send_columns(rows(*[b"x" * 100] * 100), topic="t")
        with pytest.raises(ClientError):
            await producer.close(0.0)
        patient = AsyncProducer(broker.bootstrap_servers, {**settings, "max.block.ms": 600_000})
        waiting = asyncio.create_task(patient.send_columns(rows(*[b"x" * 100] * 100), topic="t"))
        async with asyncio.timeout(60):
            while not patient.native.incomplete_batches():
                await others_have_run()
        assert not waiting.done()
        with pytest.raises(ClientError):
            await patient.close(0.0)
        with pytest.raises(ClosedError):
            await waiting


async def test_what_cannot_be_sent_as_rows_is_refused_as_by_the_blocking_producer() -> None:
    with ScriptedBroker() as broker:
        async with AsyncProducer(broker.bootstrap_servers, {**QUICK, "max.request.size": 100}) as producer:
            with pytest.raises(SettingError, match="must be a record batch, a table or a stream of Arrow"):
                await producer.send_columns([b"x"], topic="t")  # type: ignore[arg-type]
            with pytest.raises(SettingError, match='column "lag" is not known'):
                await producer.send_columns(pa.record_batch({"value": [b"x"], "lag": [1]}), topic="t")
            with pytest.raises(RecordError, match=r"^row 1: .*no row of the batch was sent$"):
                await producer.send_columns(rows(b"x", b"x" * 800), topic="t")
        async with AsyncProducer(broker.bootstrap_servers, QUICK, partitioner=lambda *_: 0) as producer:
            with pytest.raises(SettingError, match="send_columns does not call the partitioner"):
                await producer.send_columns(rows(b"x"), topic="t")
        assert broker.received == []


async def test_rows_that_fail_are_raised_by_their_delivery_or_by_a_flush() -> None:
    with ScriptedBroker([TOO_LARGE, TOO_LARGE]) as broker:
        async with AsyncProducer(broker.bootstrap_servers, QUICK) as producer:
            awaited = await producer.send_columns(rows(b"x", b"y"), topic="t")
            with pytest.raises(BrokerError, match=r"; 2 of 2 rows were not delivered$"):
                await awaited.result()
            await producer.flush()
            await producer.send_columns(rows(b"x", b"y", b"z"), topic="t")
            with pytest.raises(BrokerError, match=r"; 3 records of t-0 were not delivered$"):
                await producer.flush()
            await producer.flush()
