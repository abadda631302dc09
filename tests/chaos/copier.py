"""A program that copies a topic in transactions: reads, transforms, writes and commits its offsets, each record once.

Owns one librdkafka consumer and one transactional producer. What can be aborted is aborted and read again; what cannot
ends the program, and the next one takes over its transactional id.

Usage: python -m tests.chaos.copier BOOTSTRAP GROUP INPUT OUTPUT TRANSACTIONAL_ID
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

_AT_ONCE = 50
_PATIENCE_S = 30


def main(bootstrap: str, group: str, source: str, target: str, transactional_id: str) -> None:
    """Copy until this process is ended."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "linger.ms": 2,
        }
    )
    producer.init_transactions(60)
    consumer.subscribe([source])
    print("ready", flush=True)
    while True:
        messages = [one for one in consumer.consume(_AT_ONCE, 0.2) if one.error() is None]
        if messages:
            copy(consumer, producer, messages, target)


def copy(consumer: Consumer, producer: Producer, messages: list[Message], target: str) -> None:
    """Copy some records and commit their offsets in one transaction, or none; raises what cannot be aborted."""
    ends: dict[tuple[str, int], int] = {}
    try:
        producer.begin_transaction()
        for one in messages:
            producer.produce(target, key=one.key(), value=one.value().upper(), partition=one.partition())
            ends[one.topic(), one.partition()] = one.offset() + 1
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in ends.items()]
        # Its timeout does not hold where the group's coordinator goes away (librdkafka 5456, 5511): this process ends.
        signal.alarm(_PATIENCE_S + 5)
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), _PATIENCE_S)
        signal.alarm(0)
        producer.commit_transaction(30)
    except KafkaException as error:
        signal.alarm(0)
        fault = error.args[0]
        if fault.retriable():
            commit_again(producer)
        elif fault.txn_requires_abort():
            producer.abort_transaction(30)
            go_back(consumer, messages)
        else:
            raise


def commit_again(producer: Producer) -> None:
    """Commit what could not be in time; raises what is no matter of time."""
    while True:
        try:
            producer.commit_transaction(30)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def go_back(consumer: Consumer, messages: list[Message]) -> None:
    """Read again from the first record that was not copied, where the partitions are still this consumer's."""
    firsts: dict[tuple[str, int], int] = {}
    for one in messages:
        firsts.setdefault((one.topic(), one.partition()), one.offset())
    own = {(one.topic, one.partition) for one in consumer.assignment()}
    for (topic, partition), offset in firsts.items():
        if (topic, partition) in own:
            consumer.seek(TopicPartition(topic, partition, offset))


if __name__ == "__main__":
    main(*sys.argv[1:])
