"""The clients of a cluster under faults: producers, groups that commit, and a reader of ends; all is recorded.

Owns the threads of its clients and what they record. Clients are librdkafka's and `pybroker.client`'s admin, with
settings that try on through every fault. Must not know which faults there are.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import confluent_kafka

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import LATEST, TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from tests.chaos.history import Commit, EndRead, History, Outcome, Poll, Record, Send, Where

KEYS = 20
PARTITIONS = 3
_PATIENT = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 20,
    "log_level": 0,
}
_DELIVERY_MS = 120_000


class Client(threading.Thread):
    """A client in a thread of its own, until it is stopped."""

    def __init__(self, name: str, history: History) -> None:
        super().__init__(name=name)
        self._history = history
        self._stopped = threading.Event()
        self.failure: BaseException | None = None
        self.doing = "beginning"

    def run(self) -> None:
        """Run until the end, and keep what went wrong."""
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
            self.failure = error

    def work(self) -> None:
        """What it does."""
        raise NotImplementedError

    def stop(self) -> None:
        """Have it end by itself; returns at once."""
        self._stopped.set()

    def finish(self, within: float) -> None:
        """Stop it and wait for its end; raises what it failed with."""
        self.stop()
        self.join(within)
        assert not self.is_alive(), f"{self.name} did not end within {within:g} s: it was {self.doing}"
        if self.failure is not None:
            raise self.failure


class Sender(Client):
    """An idempotent producer with acks=all that sends numbered records at a rate."""

    def __init__(self, name: str, history: History, servers: str, topic: str, rate: int, *, keyed: bool) -> None:
        super().__init__(name, history)
        self._settings = {
            **_PATIENT,
            "bootstrap.servers": servers,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 2,
            "delivery.timeout.ms": _DELIVERY_MS,
            "topic.metadata.refresh.interval.ms": 5000,
        }
        self._topic = topic
        self._rate = rate
        self._keyed = keyed
        self.acknowledged = 0
        self.errors: list[str] = []

    def work(self) -> None:
        """Send; at the end wait for every answer."""
        producer = confluent_kafka.Producer(self._settings)
        started = time.monotonic()
        number = 0
        while not self._stopped.is_set():
            behind = number - (time.monotonic() - started) * self._rate
            producer.poll(0 if behind < 0 else behind / self._rate)
            if behind < 0:
                number += self._send(producer, number)
        left = producer.flush(_DELIVERY_MS / 1000 + 10)
        assert left == 0, f"{self.name}: {left} records were neither acknowledged nor failed"

    def _send(self, producer: Any, number: int) -> int:
        where = Where(self._topic, number % PARTITIONS)
        value = f"{self.name}:{number}"
        key = f"key-{number // PARTITIONS % KEYS}" if self._keyed else None
        begun = time.monotonic()

        def delivered(error: Any, message: Any) -> None:
            outcome = Outcome.ACKNOWLEDGED if error is None else Outcome.UNKNOWN
            # librdkafka has no offset of a batch that the leader knew already (DUPLICATE_SEQUENCE_NUMBER).
            known = message.offset() if error is None else None
            offset = -1 if known is None else known
            made = Send(where, self.name, number, value, key, outcome, offset, begun, time.monotonic())
            self._history.sends.append(made)
            if error is None:
                self.acknowledged += 1
            else:
                self.errors.append(str(error))

        try:
            producer.produce(where.topic, value, key, partition=where.partition, on_delivery=delivered)
        except BufferError:
            producer.poll(0.01)
            return 0
        return 1


class GroupMember(Client):
    """A member of a group that commits what it has read before it reads on."""

    def __init__(self, name: str, history: History, servers: str, topics: list[str], group: str, protocol: str) -> None:
        super().__init__(name, history)
        self._topics = topics
        self._group = group
        self._settings: dict[str, Any] = {
            **_PATIENT,
            "bootstrap.servers": servers,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 5000,
        }
        if protocol == "classic":
            self._settings |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000}
        self._owned: dict[Where, int] = {}
        self._assignments = 0
        self.errors: list[str] = []

    def work(self) -> None:
        """Read and commit."""
        consumer = confluent_kafka.Consumer(self._settings)
        consumer.subscribe(self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        try:
            while not self._stopped.is_set():
                self._read(consumer)
        finally:
            self.doing = f"closing, after {self.errors[-3:]}"
            consumer.close()

    def _assigned(self, _consumer: Any, partitions: Any) -> None:
        self._assignments += 1
        self._owned |= {Where(one.topic, one.partition): self._assignments for one in partitions}

    def _revoked(self, _consumer: Any, partitions: Any) -> None:
        for one in partitions:
            self._owned.pop(Where(one.topic, one.partition), None)

    def _read(self, consumer: Any) -> None:
        self.doing = "polling"
        begun = time.monotonic()
        records: dict[Where, list[Record]] = defaultdict(list)
        for message in consumer.consume(500, 0.1):
            if message.error() is None:
                records[Where(message.topic(), message.partition())].append(_record(message))
            else:
                self.errors.append(str(message.error()))
        ended = time.monotonic()
        # A partition that was revoked meanwhile is another member's to read and to commit.
        kept = {where: found for where, found in records.items() if where in self._owned}
        for where, found in kept.items():
            reader = f"{self.name}/{self._owned[where]}"
            self._history.polls.append(Poll(where, reader, self._group, tuple(found), begun, ended))
        if kept:
            self._commit(consumer, {where: found[-1].offset + 1 for where, found in kept.items()})

    def _commit(self, consumer: Any, positions: Mapping[Where, int]) -> None:
        self.doing = f"committing {dict(positions)}"
        begun = time.monotonic()
        wanted = [confluent_kafka.TopicPartition(*where, offset) for where, offset in positions.items()]
        try:
            done = consumer.commit(offsets=wanted, asynchronous=False)
        except confluent_kafka.KafkaException as error:
            self.errors.append(f"commit: {error}")
            return
        ended = time.monotonic()
        for one in done or ():
            if one.error is None:
                where = Where(one.topic, one.partition)
                self._history.commits.append(Commit(where, self._group, one.offset, begun, ended, is_read=False))


class EndReader(Client):
    """Asks where partitions end, again and again."""

    def __init__(self, name: str, history: History, servers: str, topics: list[str]) -> None:
        super().__init__(name, history)
        self._servers = servers
        self._wanted = {TopicPartition(topic, index): LATEST for topic in topics for index in range(PARTITIONS)}

    def work(self) -> None:
        """Ask."""
        with Admin(self._servers, {"default.api.timeout.ms": 5000, "request.timeout.ms": 2000}) as admin:
            while not self._stopped.wait(0.05):
                begun = time.monotonic()
                with contextlib.suppress(BrokerError, ClientError):
                    found = admin.list_offsets(self._wanted)
                    ended = time.monotonic()
                    for where, listed in found.items():
                        at = Where(where.topic, where.partition)
                        self._history.ends.append(EndRead(at, listed.offset, listed.leader_epoch, begun, ended))


def read_to_end(servers: str, topics: list[str], within: float) -> dict[Where, list[Record]]:
    """Return all records of topics at rest; raises AssertionError where that takes longer."""
    settings = {
        **_PATIENT,
        "bootstrap.servers": servers,
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
    consumer = confluent_kafka.Consumer(settings)
    wanted = [Where(topic, index) for topic in topics for index in range(PARTITIONS)]
    found: dict[Where, list[Record]] = {where: [] for where in wanted}
    left = set(wanted)
    deadline = time.monotonic() + within
    try:
        consumer.assign([confluent_kafka.TopicPartition(*where, confluent_kafka.OFFSET_BEGINNING) for where in wanted])
        while left:
            assert time.monotonic() < deadline, f"not read to the end within {within:g} s: {sorted(left)}"
            for message in consumer.consume(10_000, 0.5):
                error = message.error()
                where = Where(message.topic(), message.partition())
                if error is None:
                    found[where].append(_record(message))
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    left.discard(where)
    finally:
        consumer.close()
    return found


def _record(message: Any) -> Record:
    key = message.key()
    epoch = message.leader_epoch()
    return Record(
        message.offset(),
        message.value().decode(),
        None if key is None else key.decode(),
        -1 if epoch is None else epoch,
    )
