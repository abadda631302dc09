"""What clients may send and receive in a second: said in the answer first, then waited for (KIP-13, KIP-219).

How long is to be waited follows from the bytes that were counted, so most claims are about numbers in answers, not
about the time that passes.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest

from tests.conformance.conftest import AGAINST_KAFKA, Server, Topic
from tests.conformance.test_client_quotas import alter, entry
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce

WINDOW_S = 10
"""Seconds that are counted as having passed before a client's first request: all samples but the last."""
RATE_SECONDS = float(os.environ.get("PYBROKER_QUOTA_SECONDS", "0"))
"""How long the rate of real clients is measured, two minutes at least; 0: not at all."""

_names = itertools.count(1)

PRODUCER, CONSUMER, REQUESTS = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


@pytest.fixture
def client_id() -> str:
    """A client id that no other test has given a quota."""
    return f"client-{next(_names)}"


def limit(wire: Wire, topic: Topic, entity: Mapping[str, str | None], **limits: float | None) -> None:
    """Set quotas, and wait until they are in force."""
    assert alter(wire, entry(dict(entity), **limits)) == [(0, None)]
    probe = f"probe-{next(_names)}"
    assert alter(wire, entry({"client-id": probe}, producer_byte_rate=1.0)) == [(0, None)]

    def is_slowed_down() -> bool:
        with Wire(wire.address, client_id=probe) as probing:
            return bool(probing.query(produce(topic.name, batch_of(b"probe"))).throttle_time_ms)

    wait_until(is_slowed_down, within=60, what="the quotas are in force")


def size_of(made: Any, client_id: str) -> int:
    """Bytes of a request as they count."""
    made.with_header(correlation_id=1, client_id=client_id)
    return len(made.encode(header=True, framed=False))


def test_a_producer_beyond_its_rate_is_answered_first_and_then_not_read(
    wire: Wire, server: Server, topic: Topic, client_id: str
) -> None:
    rate = 20_000
    limit(wire, topic, {"client-id": client_id}, **{PRODUCER: rate})
    made = produce(topic.name, batch_of(b"x" * 212_000))
    with Wire(server.bootstrap_servers, client_id=client_id) as hasty:
        began = time.monotonic()
        response = hasty.query(made)
        waited_ms = round((size_of(made, client_id) / WINDOW_S - rate) / rate * WINDOW_S * 1000)
        assert 600 < waited_ms < 700
        assert (response.responses[0].partition_responses[0].error_code, response.throttle_time_ms) == (0, waited_ms)
        requested = produce(topic.name, batch_of(b"y"))
        correlation_id = hasty.send(requested)
        assert wire.query(fetch(topic.name)).throttle_time_ms == 0, "others go on"
        assert hasty.is_silent() or time.monotonic() - began >= waited_ms / 1000, "it is muted"
        hasty.receive(requested, correlation_id)
        assert time.monotonic() - began >= waited_ms / 1000


def test_a_rate_is_one_for_all_connections_and_outlives_them(
    wire: Wire, server: Server, topic: Topic, client_id: str
) -> None:
    limit(wire, topic, {"client-id": client_id}, **{PRODUCER: 10_000})
    for wanted in (0, 1):
        with Wire(server.bootstrap_servers, client_id=client_id) as one:
            throttled = one.query(produce(topic.name, batch_of(b"x" * 70_000))).throttle_time_ms
        assert (throttled > 3_000) == wanted
    with Wire(server.bootstrap_servers, client_id=client_id + "-2") as other:
        assert other.query(produce(topic.name, batch_of(b"x" * 70_000))).throttle_time_ms == 0


def test_a_consumer_beyond_its_rate_gets_nothing_until_it_has_waited(
    wire: Wire, server: Server, topic: Topic, client_id: str
) -> None:
    for _ in range(4):
        wire.query(produce(topic.name, batch_of(b"x" * 53_000)))
    limit(wire, topic, {"client-id": client_id}, **{CONSUMER: 10_000})
    last = 0
    with Wire(server.bootstrap_servers, client_id=client_id) as reader:
        first = reader.query(fetch(topic.name, partition_max_bytes=60_000))
        assert (first.throttle_time_ms, len(fetched(first).records) > 50_000) == (0, True)
        second = reader.query(fetch(topic.name, 1, partition_max_bytes=54_000))
        assert (list(second.responses), second.error_code, second.session_id) == ([], 0, 0)
        assert 0 < second.throttle_time_ms < 1_500
        third = second
        while third.throttle_time_ms:  # A window of whole samples, which the server's clock cuts.
            last = third.throttle_time_ms
            third = reader.query(fetch(topic.name, 1, partition_max_bytes=54_000))
        assert len(fetched(third).records) > 50_000, f"after {last} ms what was not sent is"


def test_a_fetch_takes_no_more_than_ever_could_be_sent(
    wire: Wire, server: Server, topic: Topic, client_id: str
) -> None:
    for _ in range(4):
        wire.query(produce(topic.name, batch_of(b"x" * 10_000)))
    limit(wire, topic, {"client-id": client_id}, **{CONSUMER: 2_500})
    with Wire(server.bootstrap_servers, client_id=client_id) as reader:
        response = reader.query(fetch(topic.name))
        while response.throttle_time_ms:
            assert response.throttle_time_ms < 200, "of 25,000 bytes with a few more around them"
            response = reader.query(fetch(topic.name))
        assert len(fetched(response).records) == 25_000


def test_a_throttled_session_goes_on_and_one_that_would_begin_does_not(
    wire: Wire, server: Server, topic: Topic, client_id: str
) -> None:
    wire.query(produce(topic.name, batch_of(b"x" * 30_000)))
    limit(wire, topic, {"client-id": client_id}, **{CONSUMER: 10_000})
    with Wire(server.bootstrap_servers, client_id=client_id) as reader:
        begun = reader.query(fetch(topic.name, session_epoch=0))
        assert (begun.throttle_time_ms, begun.session_id > 0) == (0, True)
        limit(wire, topic, {"client-id": client_id}, **{CONSUMER: 2_900})
        put_off = reader.query(fetch(topic.name, session_id=begun.session_id, session_epoch=1))
        assert (put_off.throttle_time_ms > 0, put_off.session_id) == (True, begun.session_id)
        assert (put_off.error_code, list(put_off.responses)) == (0, [])
        fresh = Wire(server.bootstrap_servers, client_id=client_id)
        with fresh:
            not_begun = fresh.query(fetch(topic.name, session_epoch=0))
            assert (not_begun.throttle_time_ms > 0, not_begun.session_id) == (True, 0)


def test_a_fetch_that_waits_is_put_off_when_what_it_waited_for_is_too_much(
    wire: Wire, server: Server, topic: Topic, client_id: str
) -> None:
    wire.query(produce(topic.name, batch_of(b"x" * 19_700)))
    limit(wire, topic, {"client-id": client_id}, **{CONSUMER: 2_000})
    with ExitStack() as open_readers:
        # Of all network threads: one that appends answers a reader of another, and the other mutes it.
        readers = [open_readers.enter_context(Wire(server.bootstrap_servers, client_id=client_id)) for _ in range(4)]
        assert len(fetched(readers[0].query(fetch(topic.name))).records) > 19_700
        for reader in readers:
            end = fetched(wire.query(fetch(topic.name))).high_watermark
            waiting = fetch(topic.name, end, max_wait_ms=10_000, min_bytes=1, partition_max_bytes=2_000)
            correlation_id = reader.send(waiting)
            wire.query(produce(topic.name, batch_of(b"y" * 500)))
            put_off = reader.receive(waiting, correlation_id)
            assert (list(put_off.responses), 0 < put_off.throttle_time_ms < 3_000) == ([], True)
        last = [(reader, reader.send(waiting)) for reader in readers]
        for reader, correlation_id in last:
            assert reader.receive(waiting, correlation_id).error_code == 0, "it is read again"


def test_the_more_specific_quota_binds_and_a_changed_one_takes_effect(
    wire: Wire, server: Server, topic: Topic, client_id: str
) -> None:
    own, both = {"client-id": client_id}, {"user": "ANONYMOUS", "client-id": client_id}
    limit(wire, topic, own, **{PRODUCER: 1_000})
    limit(wire, topic, both, **{PRODUCER: 1_000_000})
    made = produce(topic.name, batch_of(b"x" * 10_900))

    def throttled() -> int:
        with Wire(server.bootstrap_servers, client_id=client_id) as one:
            return int(one.query(made).throttle_time_ms)

    assert throttled() == 0
    limit(wire, topic, both, **{PRODUCER: 1_000})
    assert throttled() > 9_000, "twice 10,900 bytes are 21.8 seconds at 1,000 a second"
    limit(wire, topic, both, **{PRODUCER: None})
    assert 0 < throttled() < 1_100, "the quota of the client id alone has a count of its own"
    limit(wire, topic, own, **{PRODUCER: None})
    assert throttled() == 0


def test_acks_0_is_muted_without_an_answer(wire: Wire, server: Server, topic: Topic, client_id: str) -> None:
    limit(wire, topic, {"client-id": client_id}, **{PRODUCER: 20_000})
    with Wire(server.bootstrap_servers, client_id=client_id) as hasty:
        began = time.monotonic()
        hasty.send(produce(topic.name, batch_of(b"x" * 206_000), acks=0))
        hasty.call("Metadata", 9, topics=[])
        assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("api", ["Produce", "Fetch", "ListGroups", "Metadata"])
def test_the_time_that_requests_take_is_limited_to_a_sample_of_waiting(
    wire: Wire, server: Server, topic: Topic, client_id: str, api: str
) -> None:
    limit(wire, topic, {"client-id": client_id}, **{REQUESTS: 0.002})
    calls = {
        "Produce": lambda: produce(topic.name, batch_of(b"x")),
        "Fetch": lambda: fetch(topic.name),
    }
    with Wire(server.bootstrap_servers, client_id=client_id) as busy:
        for _ in range(500):
            if api in calls:
                response = busy.query(calls[api]())
            elif api == "Metadata":
                response = busy.call("Metadata", 9, topics=None)
            else:
                response = busy.call("ListGroups", 4)
            if response.throttle_time_ms:
                break
        assert 0 < response.throttle_time_ms <= 1_000


def test_librdkafka_sees_that_it_is_throttled(wire: Wire, server: Server, topic: Topic, client_id: str) -> None:
    limit(wire, topic, {"client-id": client_id}, **{PRODUCER: 20_000})
    events: list[Any] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "client.id": client_id,
            "linger.ms": 0,
            "throttle_cb": events.append,
        }
    )
    for _ in range(11):
        producer.produce(topic.name, os.urandom(20_000))
        producer.flush(60)
    wait_until(lambda: producer.poll(0) >= 0 and bool(events), within=60, what="a throttle time is reported")
    assert 0 < events[0].throttle_time < 5


@pytest.mark.skipif(not RATE_SECONDS, reason="PYBROKER_QUOTA_SECONDS says for how long rates are measured")
def test_the_rates_of_real_clients(wire: Wire, server: Server, topic: Topic, client_id: str) -> None:
    rate = 1_000_000
    limit(wire, topic, {"client-id": client_id}, **{PRODUCER: rate, CONSUMER: rate})
    settings = {"bootstrap.servers": server.bootstrap_servers, "client.id": client_id}
    producer = confluent_kafka.Producer({**settings, "queue.buffering.max.kbytes": 2_000, "batch.size": 100_000})
    delivered = [0]

    def count(_error: Any, message: Any) -> None:
        delivered[0] += len(message)

    def send_until(end: float) -> None:
        while time.monotonic() < end:
            try:
                producer.produce(topic.name, os.urandom(10_000), on_delivery=count)
            except BufferError:
                producer.poll(0.01)
            producer.poll(0)

    # The first window may be used at once.
    send_until(time.monotonic() + 2 * WINDOW_S)
    before, began = delivered[0], time.monotonic()
    send_until(began + RATE_SECONDS)
    produced_rate = (delivered[0] - before) / (time.monotonic() - began)
    producer.flush(60)
    consumer = confluent_kafka.Consumer(
        {**settings, "group.id": client_id, "auto.offset.reset": "earliest", "fetch.message.max.bytes": 100_000}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic.name, 0, 0)])

    def read_until(end: float) -> int:
        read = 0
        while time.monotonic() < end:
            message = consumer.poll(0.1)
            if message is None:
                continue
            if message.error() or consumer.position([confluent_kafka.TopicPartition(topic.name, 0)])[0].offset < 0:
                raise AssertionError(message.error())
            read += len(message)
        return read

    read_until(time.monotonic() + 2 * WINDOW_S)
    began = time.monotonic()
    consumed_rate = read_until(began + RATE_SECONDS) / (time.monotonic() - began)
    consumer.close()
    print(
        f"kafka={AGAINST_KAFKA}: produced {produced_rate / rate:.3f}, consumed {consumed_rate / rate:.3f} of the quota"
    )
    # A window may be used at once, and again when it is forgotten: in two minutes that is a tenth.
    assert 0.9 < produced_rate / rate < 1.1
    assert 0.9 < consumed_rate / rate < 1.1
