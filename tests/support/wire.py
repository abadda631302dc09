"""A client of raw frames: any request in any version, any bytes at all.

Messages are encoded and decoded by kafka-python's protocol package, which shares nothing with `pybroker`.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterable
from typing import Any, Self

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl

MODULES = (
    kafka.protocol.metadata,
    kafka.protocol.producer,
    kafka.protocol.consumer,
    kafka.protocol.admin,
    kafka.protocol.sasl,
)
TIMEOUT_SECONDS = 60


def message(name: str) -> Any:
    """The class of a message by Kafka's name: `message("FetchRequest")`."""
    for module in MODULES:
        if hasattr(module, name):
            return getattr(module, name)
    raise LookupError(name)


def request(name: str, version: int, **fields: Any) -> Any:
    """A request; nested structures are given as dictionaries with the fields' snake_case names."""
    kind = message(f"{name}Request")
    return kind(version=version, **{key: build(kind, key, value) for key, value in fields.items()})


def build(owner: Any, field: str, value: Any) -> Any:
    """Turn dictionaries into the structures that a field of `owner` holds."""
    if isinstance(value, list):
        return [build(owner, field, item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = owner.fields[field].data_class
    return kind(**{key: build(kind, key, inner) for key, inner in value.items()})


class Wire:
    """One connection. `call` sends one request and returns its answer; `send` and `receive` are its halves."""

    def __init__(
        self, address: str, *, client_id: str = "wire", timeout: float = TIMEOUT_SECONDS, source: str = ""
    ) -> None:
        """`source` is the client's own address, by default the one that the system chooses."""
        self.address = address
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=timeout, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, name: str, version: int, **fields: Any) -> Any:
        """Send a request by Kafka's name (without `Request`) and return the decoded answer."""
        return self.ask(request(name, version, **fields))

    def ask(self, made: Any) -> Any:
        """Send a request and return the decoded answer."""
        correlation_id = self.send(made)
        return self.receive(made, correlation_id)

    def send(self, made: Any) -> int:
        """Send a request without waiting for its answer; returns its correlation id."""
        self._correlation_id += 1
        made.with_header(correlation_id=self._correlation_id, client_id=self._client_id)
        self.socket.sendall(made.encode(header=True, framed=True))
        return self._correlation_id

    def receive(self, made: Any, correlation_id: int) -> Any:
        """Read one frame and decode it as the answer to `made`."""
        frame = self.read_frame()
        (answered,) = struct.unpack_from(">i", frame)
        assert answered == correlation_id, f"answer {answered} came where {correlation_id} was due"
        kind = message(made.name.replace("Request", "Response"))
        return kind.decode(frame, version=made.API_VERSION, header=True)

    def is_silent(self) -> bool:
        """Whether nothing has come that was not received yet."""
        looking = select.poll()  # select() takes no descriptor beyond 1,023
        looking.register(self.socket, select.POLLIN)
        return not looking.poll(0)

    def send_bytes(self, data: bytes) -> None:
        """Put bytes on the wire as they are."""
        self.socket.sendall(data)

    def send_frame(self, body: bytes) -> None:
        """Send bytes with their size in front."""
        self.send_bytes(struct.pack(">i", len(body)) + body)

    def read_frame(self) -> bytes:
        """The next frame without its size; raises ConnectionError when the peer closed."""
        (size,) = struct.unpack(">i", self.read_exactly(4))
        return self.read_exactly(size)

    def read_exactly(self, size: int) -> bytes:
        """That many bytes; raises ConnectionError when the peer closed before."""
        parts: list[bytes] = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionError("the peer closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def is_closed_by_peer(self) -> bool:
        """Wait for the peer to close the connection: true when it does, false when it answers instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def header(
    api_key: int, version: int, correlation_id: int, client_id: bytes | None = b"wire", *, flexible: bool = False
) -> bytes:
    """A request header by hand, for keys and versions that no message class knows."""
    size = -1 if client_id is None else len(client_id)
    return (
        struct.pack(">hhih", api_key, version, correlation_id, size) + (client_id or b"") + (b"\0" if flexible else b"")
    )


def produce(
    topic: str, *batches: bytes, version: int = 9, acks: int = -1, partition: int = 0, topic_id: Any = None
) -> Any:
    """A Produce request for one partition."""
    named = {"topic_id": topic_id} if version >= 13 else {"name": topic}
    data = {**named, "partition_data": [{"index": partition, "records": b"".join(batches)}]}
    return request("Produce", version, transactional_id=None, acks=acks, timeout_ms=10_000, topic_data=[data])


def produced(answer: Any) -> Any:
    """The one partition's part of a Produce answer."""
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return partition


def fetch(
    topic: str,
    offset: int = 0,
    *,
    version: int = 12,
    topic_id: Any = None,
    partitions: Iterable[int] = (0,),
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 1 << 20,
    session_id: int = 0,
    session_epoch: int = -1,
    leader_epoch: int = -1,
    isolation_level: int = 0,
    rack_id: str = "",
) -> Any:
    """A Fetch request for partitions of one topic, without a session unless one is given."""
    named = {"topic_id": topic_id} if version >= 13 else {"topic": topic}
    wanted = [
        {
            "partition": partition,
            "current_leader_epoch": leader_epoch,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": partition_max_bytes,
        }
        for partition in partitions
    ]
    return request(
        "Fetch",
        version,
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[{**named, "partitions": wanted}] if wanted else [],
        forgotten_topics_data=[],
        rack_id=rack_id,
    )


def fetched(answer: Any) -> Any:
    """The one partition's part of a Fetch answer."""
    (topic,) = answer.responses
    (partition,) = topic.partitions
    return partition
