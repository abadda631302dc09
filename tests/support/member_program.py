"""A group member as a process: `python -m tests.support.member_program CLIENT SERVERS TOPIC GROUP`.

It reads, commits synchronously after every poll, and prints a line for each event: `+ TIME P,P` for assigned
partitions, `- TIME P,P` for revoked or lost ones, `r PARTITION OFFSET` for a record. TIME is that of the machine's
monotonic clock, in nanoseconds. At SIGTERM it leaves the group and ends.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

SESSION_MS, HEARTBEAT_MS = 6_000, 300

_ending: list[int] = []


def report(what: str, partitions: Iterable[int]) -> None:
    """Print one line about partitions."""
    listed = ",".join(map(str, sorted(partitions)))
    if listed:
        print(f"{what} {time.monotonic_ns()} {listed}", flush=True)


def print_records(records: Iterable[tuple[int, int]]) -> None:
    """Print one line for each record."""
    print("".join(f"r {partition} {offset}\n" for partition, offset in records), end="", flush=True)


def pybroker_classic(servers: str, topic: str, group: str, **more: Any) -> None:
    """pybroker's consumer."""
    from pybroker.client import CommitFailedError, Consumer, RebalanceListener, TopicPartition

    class Listener(RebalanceListener):
        def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            report("-", (p.partition for p in partitions))

        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            report("+", (p.partition for p in partitions))

    properties = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, **more}
    with Consumer(servers, properties) as consumer:
        consumer.subscribe([topic], listener=Listener())
        while not _ending:
            records = consumer.poll(0.1)
            if records:
                print_records((r.partition, r.offset) for r in records)
                try:
                    consumer.commit()
                except CommitFailedError:
                    continue  # the new owner of the partitions reads the records again


def pybroker_cooperative(servers: str, topic: str, group: str) -> None:
    """pybroker's consumer with the cooperative assignor."""
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    pybroker_classic(servers, topic, group, **_classic_times(), **strategy)


def pybroker_consumer(servers: str, topic: str, group: str) -> None:
    """pybroker's consumer with the protocol of KIP-848."""
    pybroker_classic(servers, topic, group, **{"group.protocol": "consumer"})


def _classic_times() -> dict[str, Any]:
    return {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}


def confluent(servers: str, topic: str, group: str, protocol: str = "classic") -> None:
    """librdkafka."""
    import confluent_kafka

    settings = {"bootstrap.servers": servers, "group.id": group, "group.protocol": protocol}
    settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    settings |= {k: str(v) for k, v in _classic_times().items()} if protocol == "classic" else {}
    consumer = confluent_kafka.Consumer(settings)

    def printer(what: str) -> Callable[[Any, Any], None]:
        return lambda _consumer, partitions: report(what, (p.partition for p in partitions))

    consumer.subscribe([topic], on_assign=printer("+"), on_revoke=printer("-"), on_lost=printer("-"))
    while not _ending:
        records = [r for r in consumer.consume(100, 0.1) if r.error() is None]
        if records:
            print_records((r.partition(), r.offset()) for r in records)
            try:
                consumer.commit(asynchronous=False)
            except confluent_kafka.KafkaException:
                continue
    consumer.close()


def kafka_python(servers: str, topic: str, group: str) -> None:
    """kafka-python."""
    import logging

    import kafka
    from kafka.errors import KafkaError

    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("kafka.coordinator").setLevel(logging.INFO)

    class Listener(kafka.ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            report("-", (p.partition for p in revoked))

        def on_partitions_assigned(self, assigned: Any) -> None:
            report("+", (p.partition for p in assigned))

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.subscribe([topic], listener=Listener())
    # When a leader rejoins because it discovered the topic, it loses that state if a poll ends between the responses to
    # its JoinGroup and its SyncGroup (3.0.12). So the first poll, which discovers the topic, has a long timeout.
    patience_ms = 10_000
    while not _ending:
        records = [record for batch in consumer.poll(patience_ms).values() for record in batch]
        patience_ms = 100
        if records:
            print_records((r.partition, r.offset) for r in records)
            try:
                consumer.commit()
            except KafkaError:
                continue
    consumer.close()


async def _aiokafka(servers: str, topic: str, group: str) -> None:
    import aiokafka
    from aiokafka.errors import KafkaError

    class Listener(aiokafka.ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            report("-", (p.partition for p in revoked))

        def on_partitions_assigned(self, assigned: Any) -> None:
            report("+", (p.partition for p in assigned))

    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not _ending:
        batches = await consumer.getmany(timeout_ms=100)
        records = [record for batch in batches.values() for record in batch]
        if records:
            print_records((r.partition, r.offset) for r in records)
            try:
                await consumer.commit()
            except KafkaError:
                continue
    report("-", (p.partition for p in consumer.assignment()))  # stop() does not call the listener
    await consumer.stop()


CLIENTS: dict[str, Callable[[str, str, str], None]] = {
    "aiokafka": lambda *words: asyncio.run(_aiokafka(*words)),
    "confluent": confluent,
    "confluent-consumer": lambda servers, topic, group: confluent(servers, topic, group, "consumer"),
    "kafka-python": kafka_python,
    "pybroker": lambda *words: pybroker_classic(*words, **_classic_times()),
    "pybroker-cooperative": pybroker_cooperative,
    "pybroker-consumer": pybroker_consumer,
}


def main(client: str, servers: str, topic: str, group: str) -> None:
    """Consume until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda number, _frame: _ending.append(number))
    CLIENTS[client](servers, topic, group)


if __name__ == "__main__":
    main(*sys.argv[1:])
