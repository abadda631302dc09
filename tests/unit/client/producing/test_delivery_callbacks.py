"""How a blocking producer reports what became of a record: deliveries and callbacks."""

from __future__ import annotations

import gc
import logging
import os
import threading
import weakref
from collections.abc import Callable

import pytest

from pybroker.client.errors import BrokerError, ClosedError, DeliveryError, SettingError
from pybroker.client.producing.producer import Producer
from pybroker.client.producing.record_metadata import RecordMetadata
from tests.support.conditions import wait_until
from tests.support.scripted_broker import HELD, ScriptedBroker

NOT_LEADER, TOO_LARGE = 6, 10
QUICK = {"linger.ms": 0, "retry.backoff.ms": 5, "reconnect.backoff.ms": 5}

Calls = list[tuple[Exception | None, RecordMetadata]]


def recording_callback() -> tuple[Calls, Callable[[Exception | None, RecordMetadata], None]]:
    calls: Calls = []
    return calls, lambda error, metadata: calls.append((error, metadata))


def test_callbacks_are_called_in_order_and_have_returned_after_flush() -> None:
    calls, callback = recording_callback()
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        for number in range(500):
            producer.send("t", b"%d" % number, on_delivery=callback)
        producer.flush()
        assert [(error, metadata.offset) for error, metadata in calls] == [(None, offset) for offset in range(500)]
        assert calls[0][1]._replace(timestamp_ms=0) == ("t", 0, 0, 0)


def test_a_producers_callback_is_for_records_without_their_own() -> None:
    (common_calls, common_callback), (own_calls, own_callback) = recording_callback(), recording_callback()
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, on_delivery=common_callback) as producer:
        producer.send("t", b"x")
        producer.send("t", b"y", on_delivery=own_callback)
        producer.send("t", b"z")
    assert ([m.offset for _, m in common_calls], [m.offset for _, m in own_calls]) == ([0, 2], [1])


def test_a_refused_record_is_reported_with_its_error() -> None:
    calls, callback = recording_callback()
    with ScriptedBroker([TOO_LARGE]) as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        producer.send("t", b"x", on_delivery=callback)
        producer.flush()
    [(error, metadata)] = calls
    assert (type(error), metadata.topic, metadata.partition, metadata.offset) == (BrokerError, "t", 0, -1)


def test_a_callback_that_raises_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    calls, callback = recording_callback()

    def fail(error: Exception | None, metadata: RecordMetadata) -> None:
        raise ValueError("not today")

    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        with caplog.at_level(logging.ERROR, "pybroker.client"):
            producer.send("t", b"x", on_delivery=fail)
            producer.flush()
        producer.send("t", b"y", on_delivery=callback)
        producer.flush()
    assert [metadata.offset for _, metadata in calls] == [1]
    assert "topic 't' partition 0 offset 0: the delivery callback" in caplog.text
    assert "ValueError: not today" in caplog.text


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_callback_that_would_end_a_program_ends_no_other_callback(
    raised: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    calls, callback = recording_callback()

    def end(error: Exception | None, metadata: RecordMetadata) -> None:
        raise raised

    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        for number in range(100):
            producer.send("t", b"x", on_delivery=end if number == 9 else callback)
        producer.flush(60)
        assert len(calls) == 99
        producer.send("t", b"x", on_delivery=callback)
    assert len(calls) == 100
    assert "topic 't' partition 0 offset 9: the delivery callback" in caplog.text


class Holder:
    """A program's object that owns a producer, whose callback is a method of it."""

    def __init__(self, servers: str) -> None:
        self.producer = Producer(servers, QUICK, on_delivery=self.decided)
        self.calls = 0
        self.deliveries = [self.producer.send("t", b"x") for _ in range(3)]

    def decided(self, error: Exception | None, metadata: RecordMetadata) -> None:
        self.calls += 1


def threads() -> int:
    """The threads of this process, those of the engine too."""
    return len(os.listdir("/proc/self/task"))


def test_a_producer_whose_callback_refers_to_its_holder_is_freed() -> None:
    with ScriptedBroker() as broker:
        holder = Holder(broker.bootstrap_servers)
        holder.producer.flush()
        assert holder.calls == 3
        removed, before = weakref.ref(holder), threads()
        del holder
        gc.collect()
        assert removed() is None
        wait_until(lambda: threads() <= before - 2, within=60, what="the end of the producer's two threads")


def test_a_callback_runs_on_the_thread_of_deliveries_and_may_send_and_flush() -> None:
    names, called = [], threading.Event()

    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, QUICK) as producer:

        def send_another(error: Exception | None, metadata: RecordMetadata) -> None:
            names.append(threading.current_thread().name)
            producer.send("t", b"y", on_delivery=lambda *_: called.set())
            producer.flush()

        producer.send("t", b"x", on_delivery=send_another)
        assert called.wait(60)
    assert names == ["pybroker-deliveries"]


def test_closing_calls_the_callbacks_of_what_is_given_up() -> None:
    calls, callback = recording_callback()
    before = set(threading.enumerate())
    with ScriptedBroker([NOT_LEADER]) as broker:
        producer = Producer(broker.bootstrap_servers, {**QUICK, **HELD})
        producer.send("t", b"x", on_delivery=callback)
        with pytest.raises(DeliveryError, match="1 batches still unacknowledged"):
            producer.close(0)
    assert [type(error) for error, _ in calls] == [ClosedError]
    callers = {thread for thread in threading.enumerate() if thread.name == "pybroker-deliveries"}
    assert callers <= before, "the thread of this producer's callbacks has ended"


def test_a_delivery_outlives_the_variable_of_its_producer() -> None:
    with ScriptedBroker() as broker:
        delivery = Producer(broker.bootstrap_servers, {"linger.ms": 50}).send("t", b"x")
        gc.collect()
        assert delivery.result().offset == 0
        assert [r.count for r in broker.received] == [1]


def test_a_producer_that_nobody_holds_says_what_is_lost_and_calls_its_callbacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls, callback = recording_callback()
    called = threading.Event()

    def call_and_signal(error: Exception | None, metadata: RecordMetadata) -> None:
        callback(error, metadata)
        called.set()

    with ScriptedBroker([NOT_LEADER]) as broker, caplog.at_level(logging.WARNING, "pybroker.client"):
        producer = Producer(broker.bootstrap_servers, {**QUICK, **HELD})
        removed = weakref.ref(producer)
        producer.send("t", b"x", on_delivery=call_and_signal)
        del producer
        gc.collect()
        assert removed() is None
        assert called.wait(60)
    assert [type(error) for error, _ in calls] == [ClosedError]
    assert "A Producer was not closed: 1 of its records were not delivered" in caplog.text


def test_a_function_that_is_none_is_refused() -> None:
    with pytest.raises(SettingError, match="on_delivery='later': must be a function"):
        Producer("127.0.0.1:1", on_delivery="later")  # type: ignore[call-overload]
