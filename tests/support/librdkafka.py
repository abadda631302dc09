"""Records of a topic as librdkafka reads them, for comparison with pybroker's clients."""

from __future__ import annotations

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

AT_ONCE = 10_000
WITHIN_S = 60.0


def read_partition(servers: str, topic: str, partition: int, *, committed: bool = False) -> list[Message]:
    """Return the records of a partition from its start to the end offset that librdkafka reports, in offset order."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reads-without-a-group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    found: list[Message] = []
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            for message in consumer.consume(AT_ONCE, 1.0):
                error = message.error()
                if error is None:
                    found.append(message)
                    deadline = time.monotonic() + WITHIN_S
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                elif not error.retriable() and error.code() not in _TRANSIENT:
                    raise KafkaException(error)
        raise AssertionError(f"{topic}-{partition}: librdkafka found no end within {WITHIN_S:.0f} s of its last record")
    finally:
        consumer.close()


_TRANSIENT = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError.LEADER_NOT_AVAILABLE)
