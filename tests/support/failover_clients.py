"""Producers and consumers of every client library, each in a thread, that send and read numbered records.

Owns the clients' settings: their defaults except acks=all, idempotence and the bootstrap servers. Must not know which
faults hit the brokers meanwhile.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import aiokafka
import confluent_kafka
import kafka

from pybench.peers import java
from pybroker.client import Consumer, Producer, TopicPartition
from pybroker.client.producing.record_metadata import RecordMetadata
from tests.support import programs
from tests.support.franz import franz_program

RATE = 1000
"""Records per second."""
_TICK_S = 0.01
_PATIENCE_S = 90.0


class Numbered(NamedTuple):
    """A record's offset, -1 if the client does not report it, and its number."""

    offset: int
    number: int


class Client(threading.Thread):
    """A client that runs until `finish`, which raises its failure."""

    def __init__(self, servers: str, topic: str, scratch: Path) -> None:
        super().__init__(name=type(self).__name__)
        self.servers = servers
        self.topic = topic
        self.scratch = scratch
        self.stopped = threading.Event()
        self.records: list[Numbered] = []
        """The acknowledged or consumed records, in that order."""
        self.errors: list[str] = []
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Run `work` and keep its exception."""
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001  # raised again by `finish`
            self._failure = error

    def work(self) -> None:
        """Send or read until `stopped` is set, and complete all pending operations before returning."""
        raise NotImplementedError

    def finish(self) -> None:
        """Stop the client and wait for its thread. Raises its failure."""
        self.stopped.set()
        self.join(_PATIENCE_S)
        assert not self.is_alive(), f"{self.name} did not end within {_PATIENCE_S:g} s"
        if self._failure is not None:
            raise self._failure

    def paced(self) -> Iterator[int]:
        """Yield numbers from 0 at `RATE` until the client is stopped."""
        for number in itertools.count():
            if number % int(RATE * _TICK_S) == 0 and self.stopped.wait(_TICK_S):
                return
            yield number


class ConfluentProducer(Client):
    """librdkafka through confluent-kafka."""

    def work(self) -> None:
        """Send."""
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.servers, "enable.idempotence": True, "log_level": 0}
        )
        for number in self.paced():
            producer.produce(self.topic, b"%d" % number, partition=0, on_delivery=self._delivered)
            producer.poll(0)
        assert producer.flush(_PATIENCE_S) == 0

    def _delivered(self, error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.records.append(Numbered(message.offset() or 0, int(message.value() or b"")))


class ConfluentConsumer(Client):
    """librdkafka through confluent-kafka."""

    def work(self) -> None:
        """Read."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.servers, "group.id": "unused", "enable.auto.commit": False, "log_level": 0}
        )
        consumer.assign([confluent_kafka.TopicPartition(self.topic, 0, 0)])
        try:
            while not self.stopped.is_set():
                for message in consumer.consume(1000, 0.1):
                    if message.error() is not None:
                        self.errors.append(str(message.error()))
                    else:
                        self.records.append(Numbered(message.offset() or 0, int(message.value() or b"")))
        finally:
            consumer.close()


class KafkaPythonProducer(Client):
    """kafka-python."""

    def work(self) -> None:
        """Send."""
        producer = kafka.KafkaProducer(bootstrap_servers=self.servers.split(","), acks="all", enable_idempotence=True)
        for number in self.paced():
            sent = producer.send(self.topic, b"%d" % number, partition=0)
            sent.add_callback(lambda where, number=number: self.records.append(Numbered(where.offset, number)))
            sent.add_errback(lambda error: self.errors.append(repr(error)))
        producer.flush(_PATIENCE_S)
        producer.close()


class KafkaPythonConsumer(Client):
    """kafka-python."""

    def work(self) -> None:
        """Read."""
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.servers.split(","), group_id=None, auto_offset_reset="earliest"
        )
        consumer.assign([kafka.TopicPartition(self.topic, 0)])
        try:
            while not self.stopped.is_set():
                for batch in consumer.poll(timeout_ms=100).values():
                    self.records.extend(Numbered(got.offset, int(got.value)) for got in batch)
        finally:
            consumer.close()


class AiokafkaProducer(Client):
    """aiokafka."""

    def work(self) -> None:
        """Send."""
        asyncio.run(self._send())

    async def _send(self) -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=self.servers, enable_idempotence=True)
        await producer.start()
        waiting = set()
        for number in itertools.count():
            if self.stopped.is_set():
                break
            sent = await producer.send(self.topic, b"%d" % number, partition=0)
            waiting.add(sent)
            sent.add_done_callback(waiting.discard)
            sent.add_done_callback(lambda done, number=number: self._delivered(done, number))
            if number % int(RATE * _TICK_S) == 0:
                await asyncio.to_thread(self.stopped.wait, _TICK_S)
        await asyncio.wait_for(producer.flush(), _PATIENCE_S)
        await producer.stop()

    def _delivered(self, done: asyncio.Future[object], number: int) -> None:
        if done.exception() is not None:
            self.errors.append(repr(done.exception()))
        else:
            self.records.append(Numbered(done.result().offset, number))  # type: ignore[attr-defined]


class AiokafkaConsumer(Client):
    """aiokafka."""

    def work(self) -> None:
        """Read."""
        asyncio.run(self._read())

    async def _read(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.servers, group_id=None, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition(self.topic, 0)])
        try:
            while not self.stopped.is_set():
                for batch in (await consumer.getmany(timeout_ms=100)).values():
                    self.records.extend(Numbered(got.offset, int(got.value)) for got in batch)
        finally:
            await consumer.stop()


class OurProducer(Client):
    """`pybroker.client`."""

    def work(self) -> None:
        """Send."""
        with Producer(self.servers) as producer:
            for number in self.paced():
                producer.send(self.topic, b"%d" % number, partition=0, on_delivery=self._deliver(number))

    def _deliver(self, number: int) -> Callable[[Exception | None, RecordMetadata], None]:
        def delivered(error: Exception | None, where: RecordMetadata) -> None:
            if error is not None:
                self.errors.append(repr(error))
            else:
                self.records.append(Numbered(where.offset, number))

        return delivered


class OurConsumer(Client):
    """`pybroker.client`."""

    def work(self) -> None:
        """Read."""
        with Consumer(self.servers, {"auto.offset.reset": "earliest", "enable.auto.commit": False}) as consumer:
            consumer.assign([TopicPartition(self.topic, 0)])
            while not self.stopped.is_set():
                self.records.extend(Numbered(got.offset, int(got.value or b"")) for got in consumer.poll(0.1))


class Program(Client):
    """A client in a process of its own. Each line of its standard output is a record."""

    gives_numbers = False
    """Whether the program reads numbers from standard input, one a line."""
    ends_by_itself = False
    """Whether the program exits with status 0 at the end of its standard input. Others are ended by SIGTERM."""

    def command(self) -> list[str]:
        """Return the command line of the program."""
        raise NotImplementedError

    def read(self, line: bytes) -> Numbered | None:
        """Parse a line of output into a record."""
        raise NotImplementedError

    def work(self) -> None:
        """Run the program, and read its output until it ends."""
        with (self.scratch / f"{self.name}.log").open("wb") as log:
            process = subprocess.Popen(self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert process.stdin is not None
        assert process.stdout is not None
        watching = threading.Thread(target=self._guide, args=(process, process.stdin))
        watching.start()
        try:
            for line in process.stdout:
                record = self.read(line)
                if record is not None:
                    self.records.append(record)
            status = process.wait(_PATIENCE_S)
            assert status == 0 or not self.ends_by_itself, (status, self._log())
            assert self.stopped.is_set(), f"it ended by itself with status {status}: {self._log()}"
        finally:
            self.stopped.set()
            process.kill()
            process.wait()
            process.stdout.close()
            watching.join()

    def _guide(self, process: subprocess.Popen[bytes], stdin: IO[bytes]) -> None:
        try:
            if self.gives_numbers:
                for number in self.paced():
                    stdin.write(b"%d\n" % number)
                    stdin.flush()
                    self.given(number)
            else:
                self.stopped.wait()
            stdin.close()
        except BrokenPipeError:  # the program has ended; `work` reports its status
            return
        if not self.ends_by_itself:
            process.terminate()

    def given(self, number: int) -> None:
        """Called after a number was written to the program."""

    def _log(self) -> str:
        return (self.scratch / f"{self.name}.log").read_text(errors="replace")[-2000:]


class KcatProducer(Program):
    """kcat: all its input is acknowledged when it exits with status 0. Its records have no offsets."""

    gives_numbers = True
    ends_by_itself = True

    def command(self) -> list[str]:
        """Return kcat's command line."""
        where = ["-b", self.servers, "-t", self.topic, "-p", "0"]
        return [programs.program("kcat"), "-P", *where, "-X", "enable.idempotence=true"]

    def given(self, number: int) -> None:
        """Record the number as acknowledged."""
        self.records.append(Numbered(-1, number))

    def read(self, line: bytes) -> Numbered | None:
        """kcat prints nothing."""
        raise AssertionError(line)


class OffsetAndNumber(Program):
    """A program that prints an offset and a number on each line."""

    def read(self, line: bytes) -> Numbered | None:
        """Parse a line of output into a record."""
        offset, number = line.split()
        return Numbered(int(offset), int(number))


class KcatConsumer(OffsetAndNumber):
    """kcat."""

    def command(self) -> list[str]:
        """Return kcat's command line."""
        where = ["-b", self.servers, "-t", self.topic, "-p", "0", "-o", "beginning"]
        return [programs.program("kcat"), "-C", *where, "-q", "-u", "-f", "%o %s\\n"]


class JavaProducer(Program):
    """Kafka's VerifiableProducer, with producer retries, which the tool disables by default."""

    def command(self) -> list[str]:
        """Return the command line of the tool."""
        config = self.scratch / "producer.properties"
        config.write_text("retries=2147483647\nenable.idempotence=true\n")
        words = ["--bootstrap-server", self.servers, "--topic", self.topic, "--throughput", str(RATE), "--acks", "-1"]
        program = java.short_java_command("org.apache.kafka.tools.VerifiableProducer")
        return [*program, *words, "--command-config", str(config)]

    def read(self, line: bytes) -> Numbered | None:
        """Parse an event into a record."""
        event = json.loads(line)
        if event["name"] == "producer_send_success":
            return Numbered(event["offset"], int(event["value"]))
        if event["name"] == "producer_send_error":
            self.errors.append(event["message"])
        return None


class JavaConsumer(Program):
    """Kafka's ConsoleConsumer."""

    def command(self) -> list[str]:
        """Return the command line of the tool."""
        where = ["--bootstrap-server", self.servers, "--topic", self.topic, "--partition", "0", "--offset", "earliest"]
        return [*java.short_java_command("console-consumer"), *where, "--formatter-property", "print.offset=true"]

    def read(self, line: bytes) -> Numbered | None:
        """Parse a line such as `Offset:5<TAB>5` into a record."""
        offset, number = line.split(b"\t")
        return Numbered(int(offset.removeprefix(b"Offset:")), int(number))


class FranzProducer(OffsetAndNumber):
    """franz-go."""

    gives_numbers = True
    ends_by_itself = True

    def command(self) -> list[str]:
        """Return the command line of the Go program."""
        return [franz_program("numbers"), "produce", self.servers, self.topic]


class FranzConsumer(OffsetAndNumber):
    """franz-go."""

    ends_by_itself = True

    def command(self) -> list[str]:
        """Return the command line of the Go program."""
        return [franz_program("numbers"), "consume", self.servers, self.topic]


LIBRARIES: dict[str, tuple[type[Client], type[Client]]] = {
    "confluent-kafka": (ConfluentProducer, ConfluentConsumer),
    "kafka-python": (KafkaPythonProducer, KafkaPythonConsumer),
    "aiokafka": (AiokafkaProducer, AiokafkaConsumer),
    "kcat": (KcatProducer, KcatConsumer),
    "java": (JavaProducer, JavaConsumer),
    "franz-go": (FranzProducer, FranzConsumer),
    "pybroker": (OurProducer, OurConsumer),
}
"""Producer and consumer by the library's name."""
