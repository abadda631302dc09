"""Loads of one Python client: `python -m pybench.client_loads LOAD SERVER TOPIC RECORDS SIZE` prints figures as JSON.

Each load is a typical program with that client: record by record, over asyncio with a thousand records in flight, or by
columns. The topic exists. Settings that all clients have are equal: acks=all, idempotent, linger.ms 5, batch.size
64 KiB, max.poll.records 500.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

IN_FLIGHT = 1000
LINGER_MS = 5
BATCH_BYTES = 65_536
POLLED = 500
"""Maximum number of records that a call of any consumer returns: Kafka's max.poll.records."""
COLUMN_ROWS = 10_000
PRODUCER = {"batch.size": BATCH_BYTES, "linger.ms": LINGER_MS, "acks": "all"}


def send_pybroker(server: str, topic: str, records: int, size: int) -> float:
    """`Producer.send`, record by record."""
    from pybroker.client import Producer

    value = b"x" * size
    with Producer(server, PRODUCER) as producer:
        producer.partitions(topic)
        begun = time.perf_counter()
        for _ in range(records):
            producer.send(topic, value)
        producer.flush()
        return time.perf_counter() - begun


def send_confluent(server: str, topic: str, records: int, size: int) -> float:
    """confluent-kafka's `produce`, record by record, with `poll` to serve its queue, as its documentation requires."""
    from confluent_kafka import Producer

    value = b"x" * size
    settings = {"bootstrap.servers": server, "enable.idempotence": True, "batch.size": BATCH_BYTES}
    settings |= {"linger.ms": LINGER_MS, "queue.buffering.max.messages": 1_000_000}
    producer = Producer(settings)
    producer.list_topics(topic)
    begun = time.perf_counter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        if number % IN_FLIGHT == 0:
            producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("records were not acknowledged")
    return time.perf_counter() - begun


async def async_pybroker(server: str, topic: str, records: int, size: int) -> float:
    """`AsyncProducer.send` with a thousand records in flight."""
    from pybroker.client import AsyncProducer

    async with AsyncProducer(server, PRODUCER) as producer:
        await (await producer.send(topic, b"first"))
        return await _keep_in_flight(producer.send, topic, records, size)


async def async_aiokafka(server: str, topic: str, records: int, size: int) -> float:
    """aiokafka's `send` with a thousand records in flight."""
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=server, enable_idempotence=True, linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
    )
    await producer.start()
    try:
        await (await producer.send(topic, b"first"))
        return await _keep_in_flight(producer.send, topic, records, size)
    finally:
        await producer.stop()


async def _keep_in_flight(send: Callable[..., Any], topic: str, records: int, size: int) -> float:
    value, waiting = b"x" * size, deque[Any]()
    begun = time.perf_counter()
    for _ in range(records):
        waiting.append(await send(topic, value))
        if len(waiting) >= IN_FLIGHT:
            await waiting.popleft()
    for future in waiting:
        await future
    return time.perf_counter() - begun


def poll_pybroker(server: str, topic: str, records: int, size: int) -> float:
    """`Consumer.poll` of an assigned partition. Reads every value."""
    from pybroker.client import Consumer, TopicPartition

    with Consumer(server, {"auto.offset.reset": "earliest", "max.poll.records": POLLED}) as consumer:
        consumer.assign([TopicPartition(topic, p.index) for p in consumer.partitions_for(topic).partitions])
        return _read(lambda: [record.value for record in consumer.poll(10)], records, size)


def poll_confluent(server: str, topic: str, records: int, size: int) -> float:
    """confluent-kafka's `consume` of an assigned partition. Reads every value."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": server, "group.id": "pybench", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    try:
        return _read(lambda: [record.value() for record in consumer.consume(POLLED, 10)], records, size)
    finally:
        consumer.close()


def poll_kafka_python(server: str, topic: str, records: int, size: int) -> float:
    """kafka-python's `poll` of an assigned partition. Reads every value."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest", max_poll_records=POLLED)
    consumer.assign([TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()])

    def poll() -> list[bytes]:
        return [record.value for found in consumer.poll(10_000).values() for record in found]

    try:
        return _read(poll, records, size)
    finally:
        consumer.close()


def _read(poll: Callable[[], list[Any]], records: int, size: int) -> float:
    """Measure from the first records on, which excludes the time to connect."""
    left = records - len(poll())
    begun = time.perf_counter()
    while left > 0:
        values = poll()
        if not values or len(values[0]) != size:
            raise RuntimeError(f"{left} records are missing, or others are there")
        left -= len(values)
    return time.perf_counter() - begun


def send_columns(server: str, topic: str, records: int, size: int) -> float:
    """`Producer.send_columns`, batches of 10,000 rows."""
    import pyarrow as pa

    from pybroker.client import Producer

    batch = pa.record_batch({"value": pa.array([b"x" * size] * COLUMN_ROWS, pa.binary())})
    with Producer(server, {**PRODUCER, "batch.size": 1_000_000, "max.request.size": 2_000_000}) as producer:
        producer.partitions(topic)
        begun = time.perf_counter()
        for _ in range(records // COLUMN_ROWS):
            producer.send_columns(batch, topic=topic)
        producer.flush()
        return time.perf_counter() - begun


def fetch_columns(server: str, topic: str, records: int, size: int) -> float:
    """`ColumnFetcher.take` of the column `value`."""
    from pybroker.client import EARLIEST, ColumnFetcher, Producer, TopicPartition

    with Producer(server) as producer:
        count = producer.partitions(topic)
    with ColumnFetcher(server) as fetcher:
        fetcher.assign({TopicPartition(topic, number): EARLIEST for number in range(count)})
        left, begun = records, 0.0
        while left > 0:
            taken = fetcher.take(10, columns=["value"])
            if taken is None or taken.bytes != taken.rows * size:
                raise RuntimeError(f"{left} records are missing, or others are there")
            left -= taken.rows
            begun = begun or time.perf_counter()
        return time.perf_counter() - begun


LOADS: dict[str, Callable[[str, str, int, int], float | Coroutine[Any, Any, float]]] = {
    "async-aiokafka": async_aiokafka,
    "async-pybroker": async_pybroker,
    "fetch-columns": fetch_columns,
    "poll-confluent": poll_confluent,
    "poll-kafka-python": poll_kafka_python,
    "poll-pybroker": poll_pybroker,
    "send-columns": send_columns,
    "send-confluent": send_confluent,
    "send-pybroker": send_pybroker,
}


def main() -> None:
    """Run one load."""
    name, server, topic, records, size = sys.argv[1:6]
    outcome = LOADS[name](server, topic, int(records), int(size))
    seconds = outcome if isinstance(outcome, float) else asyncio.run(outcome)
    print(json.dumps({"records": int(records), "bytes": int(records) * int(size), "seconds": seconds}))


if __name__ == "__main__":
    main()
