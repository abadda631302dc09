"""Records that are not delivered and whose failure nobody takes: what `flush` and `close` raise, and what is logged."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from typing import Any

import pyarrow as pa
import pytest

from pybroker.client import AsyncProducer, BrokerError, ErrorCode, Producer
from pybroker.client.errors import ClosedError, DeliveryError
from tests.support.conditions import wait_until
from tests.support.scripted_broker import HELD, ScriptedBroker

NOT_LEADER, TOO_LARGE, UNAUTHORIZED = 6, 10, 29
QUICK = {"linger.ms": 0, "retry.backoff.ms": 5, "reconnect.backoff.ms": 5}
TOGETHER = {**QUICK, "linger.ms": 60_000}
"""Records of a partition are one batch, which `flush` sends."""


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "pybroker.client" and "not delivered" in r.getMessage()]


def test_flush_raises_the_first_failure_with_the_count_and_the_partitions() -> None:
    with ScriptedBroker([TOO_LARGE], further=[[TOO_LARGE], []]) as broker:
        producer = Producer(broker.bootstrap_servers, TOGETHER)
        for partition in (0, 1, 2):
            for _ in range(10):
                producer.send("t", b"x", partition=partition)
        with pytest.raises(
            BrokerError, match=r"MESSAGE_TOO_LARGE.*; 20 records of t-[01], t-[01] were not del"
        ) as raised:
            producer.flush()
        assert raised.value.code == ErrorCode.MESSAGE_TOO_LARGE
        producer.flush()
        producer.close()


def test_leaving_the_block_raises_a_failure() -> None:
    with (
        ScriptedBroker([TOO_LARGE]) as broker,
        pytest.raises(BrokerError, match="1 record of t-0 was not delivered"),
        Producer(broker.bootstrap_servers, QUICK) as producer,
    ):
        producer.send("t", b"x")


def test_a_failure_that_was_taken_is_not_raised_again() -> None:
    script = [TOO_LARGE, 0, TOO_LARGE, 0, TOO_LARGE]
    with ScriptedBroker(script) as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        with pytest.raises(BrokerError):
            producer.send("t", b"x").result()
        assert producer.send("t", b"x").exception() is None
        assert isinstance(producer.send("t", b"x").exception(30), BrokerError)
        assert producer.send("t", b"x").result().offset == 1
        calls: list[Exception | None] = []
        producer.send("t", b"x", on_delivery=lambda error, _: calls.append(error))
        producer.flush()
        assert [type(error) for error in calls] == [BrokerError]


def test_of_a_batch_the_records_are_counted_that_nobody_looked_at() -> None:
    with ScriptedBroker([TOO_LARGE]) as broker, Producer(broker.bootstrap_servers, TOGETHER) as producer:
        producer.send("t", b"a", on_delivery=lambda *_: None)
        taken = [producer.send("t", b"b") for _ in range(3)]
        for _ in range(6):
            producer.send("t", b"c")
        with pytest.raises(DeliveryError, match="no outcome"):
            taken[0].result(0)
        producer.send("t", b"d")
        super(Producer, producer).flush(60)
        for delivery in (*taken, taken[0]):
            assert isinstance(delivery.exception(), BrokerError)
        with pytest.raises(BrokerError, match="7 records of t-0 were not delivered"):
            producer.flush()


def test_a_setting_turns_the_error_into_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    settings = {**TOGETHER, "unobserved.failures": "log"}
    caplog.set_level(logging.WARNING, "pybroker.client")
    with ScriptedBroker([TOO_LARGE]) as broker, Producer(broker.bootstrap_servers, settings) as producer:
        for _ in range(10):
            producer.send("t", b"x")
    assert len(warnings_of(caplog)) == 2
    assert re.search(r"10 records of t-0 were not delivered: .*MESSAGE_TOO_LARGE", warnings_of(caplog)[0])
    assert warnings_of(caplog)[1].endswith("(unobserved.failures=log)")


def test_each_partition_and_cause_is_logged_once_at_the_next_send(caplog: pytest.LogCaptureFixture) -> None:
    script = [TOO_LARGE, TOO_LARGE, TOO_LARGE, UNAUTHORIZED, UNAUTHORIZED]
    with ScriptedBroker(script) as broker, caplog.at_level(logging.WARNING, "pybroker.client"):
        producer = Producer(broker.bootstrap_servers, QUICK)
        for _ in script:
            producer.send("t", b"x")
            super(Producer, producer).flush(60)
        producer.send("t", b"x")
        codes = [re.findall(r"MESSAGE_TOO_LARGE|TOPIC_AUTHORIZATION_FAILED", text) for text in warnings_of(caplog)]
        assert codes == [["MESSAGE_TOO_LARGE"], ["TOPIC_AUTHORIZATION_FAILED"]]
        with pytest.raises(BrokerError, match="5 records of t-0 were not delivered"):
            producer.close()


def test_the_error_of_a_block_is_raised_and_the_failure_logged(caplog: pytest.LogCaptureFixture) -> None:
    def send_and_fail(servers: str) -> None:
        with Producer(servers, QUICK) as producer:
            producer.send("t", b"x")
            super(Producer, producer).flush(60)
            raise ZeroDivisionError

    caplog.set_level(logging.WARNING, "pybroker.client")
    with ScriptedBroker([TOO_LARGE]) as broker, pytest.raises(ZeroDivisionError) as raised:
        send_and_fail(broker.bootstrap_servers)
    assert "1 record of t-0 was not delivered" in raised.value.__notes__[0]
    assert len(warnings_of(caplog)) == 1


def test_what_a_close_gives_up_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedBroker([NOT_LEADER]) as broker, caplog.at_level(logging.WARNING, "pybroker.client"):
        producer = Producer(broker.bootstrap_servers, {**QUICK, **HELD})
        for _ in range(3):
            producer.send("t", b"x")
        with pytest.raises(DeliveryError, match="batches still unacknowledged"):
            producer.close(0)
    assert re.fullmatch(
        r"(1 record of t-0 was|[23] records of t-0 were) not delivered: the producer is closed", warnings_of(caplog)[0]
    )


def test_many_failed_batches_are_counted_exactly() -> None:
    count = 1_500
    with ScriptedBroker([TOO_LARGE] * count) as broker:
        producer = Producer(broker.bootstrap_servers, {**QUICK, "enable.idempotence": False})
        for _ in range(count):
            producer.send("t", b"x")
            super(Producer, producer).flush(60)
        with pytest.raises(BrokerError, match=f"{count} records of t-0 were not delivered"):
            producer.close()


def columns(count: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array([b"x"] * count, pa.binary())], names=["value"])


def test_rows_have_a_delivery() -> None:
    with ScriptedBroker([0, TOO_LARGE]) as broker, Producer(broker.bootstrap_servers, TOGETHER) as producer:
        sent = producer.send_columns(columns(100), topic="t")
        assert not sent.done()
        with pytest.raises(DeliveryError, match="100 rows: no outcome within 0 s"):
            sent.result(0)
        producer.flush()
        assert (len(sent), sent.done(), sent.result()) == (100, True, 100)
        refused = producer.send_columns(columns(50), topic="t")
        super(Producer, producer).flush(60)
        for _ in range(2):
            with pytest.raises(BrokerError, match=r"MESSAGE_TOO_LARGE.*; 50 of 50 rows were not delivered") as raised:
                refused.result()
            assert raised.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_rows_that_nobody_looks_at_are_raised_by_flush() -> None:
    with ScriptedBroker([TOO_LARGE]) as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        producer.send_columns(columns(50), topic="t")
        with pytest.raises(BrokerError, match="50 records of t-0 were not delivered"):
            producer.flush()


def run_async(script: list[int], program: Any, settings: dict[str, Any] = QUICK) -> None:
    async def run() -> None:
        with ScriptedBroker(script) as broker:
            async with AsyncProducer(broker.bootstrap_servers, settings) as producer:
                await program(producer)

    asyncio.run(run())


def test_asyncio_raises_what_nobody_awaited(caplog: pytest.LogCaptureFixture) -> None:
    async def program(producer: AsyncProducer) -> None:
        for _ in range(10):
            await producer.send("t", b"x")
        with pytest.raises(BrokerError, match="10 records of t-0 were not delivered"):
            await producer.flush()
        await producer.flush()
        await producer.send("t", b"x")

    caplog.set_level(logging.WARNING)
    with pytest.raises(BrokerError, match="1 record of t-0 was not delivered"):
        run_async([TOO_LARGE, TOO_LARGE], program, TOGETHER)
    assert len(warnings_of(caplog)) == 2
    assert "never retrieved" not in caplog.text


def test_asyncio_raises_nothing_that_was_awaited_or_called_back(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[Exception | None] = []

    async def program(producer: AsyncProducer) -> None:
        with pytest.raises(BrokerError):
            await (await producer.send("t", b"x"))
        await producer.send("t", b"x", on_delivery=lambda error, _: calls.append(error))
        await producer.flush()

    with caplog.at_level(logging.WARNING):
        run_async([TOO_LARGE] * 2, program)
    assert [type(error) for error in calls] == [BrokerError]
    assert (warnings_of(caplog), "never retrieved" in caplog.text) == ([], False)


def test_asyncio_raises_nothing_of_futures_that_are_gathered_later(caplog: pytest.LogCaptureFixture) -> None:
    """A failure that is known before its future is gathered may have a line: the next send logs it."""

    async def program(producer: AsyncProducer) -> None:
        gathered = asyncio.gather(*[await producer.send("t", b"x") for _ in range(3)], return_exceptions=True)
        await producer.flush()
        assert [type(error) for error in await gathered] == [BrokerError] * 3

    with caplog.at_level(logging.WARNING):
        run_async([TOO_LARGE] * 3, program)
    assert "never retrieved" not in caplog.text


def test_asyncio_logs_a_failure_while_the_loop_runs(caplog: pytest.LogCaptureFixture) -> None:
    async def program(producer: AsyncProducer) -> None:
        cancelled = await producer.send("t", b"x")
        cancelled.cancel()
        is_logged = functools.partial(warnings_of, caplog)
        await asyncio.to_thread(wait_until, is_logged, within=60, what="a line of the failure")

    with caplog.at_level(logging.WARNING):
        run_async([TOO_LARGE], program)
    assert len(warnings_of(caplog)) == 1


def test_the_end_of_a_block_is_noted_over_asyncio() -> None:
    async def program(producer: AsyncProducer) -> None:
        await producer.send("t", b"x")
        await asyncio.to_thread(producer.native.flush, 30)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        run_async([TOO_LARGE], program)
    assert "1 record of t-0 was not delivered" in raised.value.__notes__[0]


def test_an_asyncio_close_without_time_logs_what_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    async def program(producer: AsyncProducer) -> None:
        future = await producer.send("t", b"x")
        with pytest.raises(DeliveryError):
            await producer.close(0)
        assert isinstance(future.exception(), ClosedError)

    with caplog.at_level(logging.WARNING):
        run_async([NOT_LEADER], program, {**QUICK, **HELD})
    assert len(warnings_of(caplog)) == 1
    assert "never retrieved" not in caplog.text
