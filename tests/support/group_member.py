"""A consumer in a process of its own that prints each record before it commits the record's offset.

Run as `python group_member.py BOOTSTRAP GROUP TOPIC PROTOCOL`. Prints a line "partition offset" for each record, in
order. Leaves the group and ends at SIGTERM. Imports nothing from the tests, so that it starts fast.
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Consumer, KafkaException


def run(bootstrap_servers: str, group: str, topic: str, protocol: str) -> None:
    """Consume until SIGTERM."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": 6000, "partition.assignment.strategy": "cooperative-sticky"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    while not stopping:
        read = [message for message in consumer.consume(200, timeout=0.1) if message.error() is None]
        if not read:
            continue
        sys.stdout.write("".join(f"{message.partition()} {message.offset()}\n" for message in read))
        sys.stdout.flush()
        try:
            consumer.commit(asynchronous=False)
        except KafkaException:
            # Fenced, or the broker is unavailable: the next owner of the partitions reads these records again.
            continue
    consumer.close()


if __name__ == "__main__":
    run(*sys.argv[1:])
