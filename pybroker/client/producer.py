"""Producers: blocking and over asyncio, thin faces of one native engine.

The engine owns batches, connections, retries and order; here settings are read, and a record's fate is made to look
like what the caller's style of programming expects. Works against any Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from pybroker.client import native
from pybroker.client.errors import DeliveryError, SettingError
from pybroker.client.settings import ProducerSettings
from pybroker.client.topics import TopicPartition

Headers = Sequence[tuple[str, bytes | None]]


class ArrowArray(Protocol):
    """Whatever exports an array by Arrow's PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Capsules with schema and array."""
        ...


_CLOSE_TIMEOUT_S = 120.0
"""Longer than the default delivery.timeout.ms, so that closing decides every record."""


class RecordMetadata(NamedTuple):
    """Where a record was written; offset -1 where the broker does not tell (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where another producer stopped: what it takes to go on in its place.

    The broker takes each sequence number of a producer once: of several that go on from the same place, one gets
    through, and the others fail (or are told that their batch is there already, when it has as many records). The
    identity is kept, so the first batch that fails ends such a producer: everything that waits fails with it.
    """

    producer_id: int
    epoch: int
    sequences: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The sequence number of the next record: the records that it has written there, modulo 2^31. 0 where not named."""


class Delivery:
    """The fate of one record."""

    __slots__ = ("_native", "_topic")

    def __init__(self, topic: str, delivery: native.Delivery) -> None:
        self._topic, self._native = topic, delivery

    def done(self) -> bool:
        """Whether the fate is known."""
        return self._native.done()

    def result(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> RecordMetadata:
        """Wait until the record is acknowledged. Raises what it was given up for; DeliveryError after the timeout."""
        written = self._native.result(timeout_s)
        if written is None:
            raise DeliveryError(f"topic {self._topic!r}: no outcome within {timeout_s} s")
        return RecordMetadata(self._topic, *written)


def make_native(
    bootstrap_servers: str, properties: Mapping[str, object] | None, continues: Continuation | None = None
) -> native.Producer:
    """A native producer by Kafka's keys. Raises SettingError."""
    settings = ProducerSettings.of_client(bootstrap_servers, properties)
    place = None
    if continues is not None:
        sequences = [(p.topic, p.partition, sequence) for p, sequence in continues.sequences.items()]
        place = (continues.producer_id, continues.epoch, sequences)
    try:
        return native.Producer(
            settings, acks=settings.acks_number(), enable_idempotence=settings.is_idempotent(), continues=place
        )
    except (ValueError, OverflowError) as error:
        raise SettingError(str(error)) from None


class Producer:
    """`with Producer("127.0.0.1:9092") as p: p.send("orders", b"...")`. Thread-safe."""

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, object] | None = None,
        *,
        continues: Continuation | None = None,
    ) -> None:
        self.native = make_native(bootstrap_servers, properties, continues)
        """The engine, for load generators: `send_many`, `send_random_letters` and the measurements."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(_CLOSE_TIMEOUT_S if error is None else 0.0)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int = -1,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Put a record in its batch. Waits up to `max.block.ms` for the topic's metadata and for memory.

        Without `partition`, records with a key go by its hash and others to the partition that is being filled.
        """
        return Delivery(topic, self.native.send((topic, partition), timestamp_ms, key, value, list(headers)))

    def send_columns(self, batch: ArrowArray, *, topic: str | None = None) -> int:
        """Send a record for every row of an Arrow record batch (a `pyarrow.RecordBatch`, or what else exports one).

        Columns are found by name: `value` (binary or string; null is a tombstone) is required; `key` (binary or
        string), `topic` (string, before the argument), `partition` (int32 or int64; null: as `send` without one),
        `timestamp` (timestamp[us]; null: now) and `headers` (list<struct<key: string, value: binary>>) may be there.

        Rows of a partition keep their order. Returns how many were sent; `flush`, then `native.raise_failure()`, tell
        their fate. Waits as `send` does. Raises SettingError for a column that is missing, not known or of another
        type, and RecordError for a row that cannot be sent, by its number: then no row was sent. Where memory stays
        full (BufferFullError) or the producer is closed meanwhile (ClosedError), the error tells how many were sent.
        """
        export = getattr(batch, "__arrow_c_array__", None)
        if export is None:
            raise SettingError(f"{type(batch).__name__}: must be a record batch (a table has to_batches())")
        return self.native.send_columns(export(), topic)

    def producer_id(self) -> tuple[int, int]:
        """Id and epoch of this idempotent producer; waits up to `max.block.ms` for the broker to give them.

        A batch that fails for good makes the producer ask for others. Raises SettingError without `enable.idempotence`.
        """
        return self.native.identity()

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self.native.partitions(topic)

    def flush(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> None:
        """Wait until everything sent so far is acknowledged or given up."""
        self.native.flush(timeout_s)

    def close(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> None:
        """Flush and end; what is not acknowledged after the timeout is given up."""
        self.native.close(timeout_s)


class AsyncProducer:
    """`async with AsyncProducer("127.0.0.1:9092") as p: await p.send("orders", b"...")`. For one event loop."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, object] | None = None) -> None:
        self.native = make_native(bootstrap_servers, properties)
        self._waiting: dict[int, list[tuple[asyncio.Future[RecordMetadata], Delivery]]] = {}
        self._descriptor = self.native.decided_descriptor()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(_CLOSE_TIMEOUT_S if error is None else 0.0)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int = -1,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> asyncio.Future[RecordMetadata]:
        """Put a record in its batch; the future that is returned tells where it was written.

        The first record of a topic waits for its metadata on a thread, and so does one that finds the memory full.
        """
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            loop.add_reader(self._descriptor, self._settle)
        destination, plain = (topic, partition), list(headers)
        sent = await asyncio.to_thread(self.native.send, destination, timestamp_ms, key, value, plain)
        future: asyncio.Future[RecordMetadata] = loop.create_future()
        delivery = Delivery(topic, sent)
        if delivery.done():
            _decide(future, delivery)
        else:
            self._waiting.setdefault(sent.batch, []).append((future, delivery))
            if delivery.done():  # decided between the two lines above, and perhaps told before it was awaited
                self._settle_batch(sent.batch)
        return future

    async def flush(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> None:
        """Wait until everything sent so far is acknowledged or given up."""
        await asyncio.to_thread(self.native.flush, timeout_s)

    async def close(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> None:
        """Flush and end; what is not acknowledged after the timeout is given up."""
        try:
            await asyncio.to_thread(self.native.close, timeout_s)
        finally:
            if self._loop is not None:
                self._loop.remove_reader(self._descriptor)
                self._loop = None
            for batch in list(self._waiting):
                self._settle_batch(batch)

    def _settle(self) -> None:
        for batch in self.native.take_decided():
            self._settle_batch(batch)

    def _settle_batch(self, batch: int) -> None:
        for future, delivery in self._waiting.pop(batch, ()):
            _decide(future, delivery)


def _decide(future: asyncio.Future[RecordMetadata], delivery: Delivery) -> None:
    if future.done():
        return
    try:
        future.set_result(delivery.result(0.0))
    except Exception as error:  # noqa: BLE001 (whatever it is, it belongs to whoever awaits the record)
        future.set_exception(error)
