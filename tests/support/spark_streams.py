"""Applications on a session of Spark: topics, one round of records after the other, and what the topics have then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybroker.client import Admin, NewTopic, Producer
from pybroker.streams.runtime.collector import ProducedRecord
from pybroker.streams.topology.topology import Topology
from pybroker_spark import streams
from tests.support.streams_steps import Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RENAMED = ("id", "on", "with", "name", "store", "topic")


def create_topics(servers: str, topics: Iterable[str], partitions: int = 1) -> None:
    """Create topics and wait for their leaders."""
    names = sorted(topics)
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(name, partitions, 1) for name in names])
        for name in names:
            admin.wait_for_leaders(name)


def send(servers: str, records: Iterable[ProducedRecord]) -> None:
    """Send records to partition 0 of their topics."""
    with Producer(servers) as producer:
        for record in records:
            headers = list(record.headers)
            producer.send(
                record.topic, record.value, key=record.key, partition=0, timestamp_ms=record.timestamp, headers=headers
            )


class Application:
    """A topology with its settings and its checkpoint. Each round starts the query again from the checkpoint."""

    def __init__(
        self, spark: SparkSession, servers: str, topology: Topology, config: Mapping[str, Any], directory: Path
    ) -> None:
        self.spark = spark
        self.servers = servers
        self.topology = topology
        self.config = {"bootstrap.servers": servers, **config}
        self.checkpoint = str(directory / "checkpoint")

    def start(self, **options: Any) -> StreamingQuery:
        """Start the query."""
        return streams.run(self.topology, self.spark, self.config, checkpoint=self.checkpoint, **options)

    def round(self, records: Sequence[ProducedRecord]) -> StreamingQuery:
        """Send records, run the query until it has processed what they cause, and return the stopped query."""
        send(self.servers, records)
        query = self.start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return query

    def records(self, topics: Sequence[str]) -> dict[str, list[ProducedRecord]]:
        """Return the records of topics, in the order of partitions and offsets."""
        where = {"kafka.bootstrap.servers": self.servers, "subscribe": ",".join(topics), "includeHeaders": "true"}
        reader = self.spark.read.format("pybroker").options(**where)
        rows = reader.load().selectExpr("*", "unix_millis(timestamp) AS ms").orderBy("topic", "partition", "offset")
        found: dict[str, list[ProducedRecord]] = {topic: [] for topic in topics}
        for row in rows.collect():
            headers = tuple((header.key, _bytes(header.value)) for header in row.headers or ())
            record = ProducedRecord(row.topic, _bytes(row.key), _bytes(row.value), row.ms, headers)
            found[row.topic].append(record)
        return found


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def renamed(steps: Sequence[Step], prefix: str) -> list[Step]:
    """Return the steps of a topology with a prefix of all names, so that it can be a part of a larger topology."""
    return [
        {
            field: [f"{prefix}{topic}" for topic in value]
            if field in ("topics", "stores")
            else f"{prefix}{value}"
            if field in RENAMED
            else value
            for field, value in step.items()
        }
        for step in steps
    ]


def in_order_of_a_task(records: Sequence[ProducedRecord]) -> list[ProducedRecord]:
    """Return the order in which a task takes records that its partitions have at once: the least head first.

    Of two topics with equal heads one record is left out, since Kafka fixes no order.
    """
    ordered = _least_heads_first(records)
    # Without a record the heads are others, so the rest is ordered again.
    return ordered if len(ordered) == len(records) else in_order_of_a_task(ordered)


def _least_heads_first(records: Sequence[ProducedRecord]) -> list[ProducedRecord]:
    queues: dict[str, list[ProducedRecord]] = {}
    for record in records:
        queues.setdefault(record.topic, []).append(record)
    ordered = []
    while queues:
        heads = sorted(((queue[0].timestamp or 0), topic) for topic, queue in queues.items())
        topic = heads[0][1]
        record = queues[topic].pop(0)
        if not queues[topic]:
            del queues[topic]
        if len(heads) == 1 or heads[1][0] != heads[0][0]:
            ordered.append(record)
    return ordered
