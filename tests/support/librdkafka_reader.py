"""The values of a topic as librdkafka reads them, for comparison with pybroker's own readers."""

from __future__ import annotations

import confluent_kafka

_PATIENCE_S = 60


def values(
    bootstrap_servers: str, topic: str, *, partitions: int, isolation: str = "read_committed"
) -> list[list[bytes]]:
    """Return the values of each partition up to the end offset for the isolation level, in log order."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "unused",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        # librdkafka reports the end of a partition after a Fetch.
        "fetch.wait.max.ms": 10,
    }
    consumer = confluent_kafka.Consumer(settings)
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(partitions)])
        found: list[list[bytes]] = [[] for _ in range(partitions)]
        left = set(range(partitions))
        while left:
            message = consumer.poll(_PATIENCE_S)
            assert message is not None, f"librdkafka read nothing of {topic} in {_PATIENCE_S} s"
            if message.error() is None:
                found[message.partition()].append(message.value() or b"")
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                raise AssertionError(f"librdkafka failed to read {topic}: {message.error()}")
        return found
    finally:
        consumer.close()
