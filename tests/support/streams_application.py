"""Run topologies of steps (`streams_steps.py`) as applications against brokers, in Java or in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from pybroker.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from pybroker.streams.application.kafka_streams import KafkaStreams
from tests.support.conditions import wait_until
from tests.support.java_oracle import JavaOracle
from tests.support.streams_spec import Plan, configuration
from tests.support.streams_steps import Step, decoded, encoded

DEADLINE_S = 60
SETTINGS = {
    "statestore.cache.max.bytes": "0",
    "commit.interval.ms": "100",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
}
JAVA_ONLY = {
    "group.protocol": "streams",
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
    "consumer.auto.offset.reset": "earliest",
}


class Application(Protocol):
    """A running application."""

    def stop(self) -> None:
        """Commit and leave the group."""


class JavaApplication:
    """An application of Kafka Streams."""

    def __init__(self, oracle: JavaOracle, topology: Sequence[Step], config: dict[str, str]) -> None:
        self._oracle = oracle
        started = oracle.query("start", topology=topology, config={**SETTINGS, **JAVA_ONLY, **config})
        assert started["state"] == "RUNNING"

    def stop(self) -> None:
        """Close the application."""
        assert self._oracle.query("stop")["state"] == "NOT_RUNNING"


class PythonApplication:
    """An application of `pybroker.streams`."""

    def __init__(self, topology: Sequence[Step], config: dict[str, str]) -> None:
        """Start the application, with its stores in the directory `state.dir`."""
        whole = configuration({**SETTINGS, **config})
        self.streams = KafkaStreams(Plan().build(topology, whole), whole)
        self.streams.start()
        self.streams.wait_until_running(DEADLINE_S)

    def stop(self) -> None:
        """Close the application."""
        assert self.streams.close(DEADLINE_S)
        assert self.streams.failure is None


def with_topics(topology: Iterable[Step], rename: Callable[[str], str]) -> list[Step]:
    """Return steps with other names of topics."""
    renamed = []
    for step in topology:
        new = dict(step)
        if "topics" in step:
            new["topics"] = [rename(topic) for topic in step["topics"]]
        if "topic" in step:
            new["topic"] = rename(step["topic"])
        renamed.append(new)
    return renamed


def create_topics(servers: str, names: Iterable[str], partitions: int = 1) -> None:
    """Create topics, and wait for their leaders."""
    with Admin(servers) as admin:
        wanted = list(names)
        admin.create_topics([NewTopic(name, partitions) for name in wanted])
        for name in wanted:
            admin.wait_for_leaders(name)


def send(servers: str, inputs: Iterable[Step], rename: Callable[[str], str]) -> None:
    """Send inputs to their topics, in their order."""
    with Producer(servers) as producer:
        for given in inputs:
            if "advance_ms" in given:
                continue
            headers = [(name, decoded(value)) for name, value in given.get("headers", ())]
            producer.send(
                rename(given["topic"]),
                decoded(given["value"]),
                decoded(given["key"]),
                partition=0,
                timestamp_ms=given["timestamp"],
                headers=headers,
            )


def await_commits(servers: str, application_id: str, topics: Iterable[str], partitions_each: int = 1) -> None:
    """Wait until an application has committed the ends of all its input topics, repartition topics included."""
    with Admin(servers) as admin:
        internal = [t for t in admin.list_topics() if t.startswith(f"{application_id}-") and "-changelog" not in t]
        partitions = [TopicPartition(t, index) for t in (*topics, *internal) for index in range(partitions_each)]

        def is_complete() -> bool:
            # A commit follows the records that it causes, so ends that are read later contain them.
            committed = admin.list_group_offsets(application_id)
            ends = admin.list_offsets(dict.fromkeys(partitions, -1))
            return all(
                not ends[p].offset or (p in committed and committed[p].offset >= ends[p].offset) for p in partitions
            )

        wait_until(is_complete, within=DEADLINE_S, what=lambda: f"{application_id} committed {partitions}")


def read(servers: str, topic: str) -> list[dict[str, Any]]:
    """Return all committed records of partition 0 of a topic, as the oracle returns records."""
    partition = TopicPartition(topic, 0)
    found: list[dict[str, Any]] = []
    with Consumer(servers, {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets(partition)[partition]
        while consumer.position(partition) < end:
            found += [
                {
                    "key": encoded(record.key),
                    "value": encoded(record.value),
                    "timestamp": record.timestamp_ms,
                    "headers": [[name, encoded(data)] for name, data in record.headers],
                }
                for record in consumer.poll(1.0)
            ]
    return found
