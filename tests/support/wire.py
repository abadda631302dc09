"""A client that sends raw frames: any request in any version, or arbitrary bytes.

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
    """Return the class of a message by Kafka's name: `message("FetchRequest")`."""
    for module in MODULES:
        if hasattr(module, name):
            return getattr(module, name)
    raise LookupError(name)


def request(name: str, version: int, **fields: Any) -> Any:
    """Build a request. Nested structures are dictionaries with snake_case field names."""
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
    """One connection. `call` sends a request and returns its response. `send` and `receive` are its two halves."""

    def __init__(
        self, address: str, *, client_id: str = "wire", timeout: float = TIMEOUT_SECONDS, source: str = ""
    ) -> None:
        """`source` is the client's own address. By default the system chooses one."""
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
        """Send a request by Kafka's name (without `Request`) and return the decoded response."""
        return self.query(request(name, version, **fields))

    def query(self, made: Any) -> Any:
        """Send a request and return the decoded response."""
        correlation_id = self.send(made)
        return self.receive(made, correlation_id)

    def send(self, made: Any) -> int:
        """Send a request without waiting for its response. Returns the correlation id."""
        self._correlation_id += 1
        made.with_header(correlation_id=self._correlation_id, client_id=self._client_id)
        self.socket.sendall(made.encode(header=True, framed=True))
        return self._correlation_id

    def receive(self, made: Any, correlation_id: int) -> Any:
        """Read one frame and decode it as the response to `made`."""
        frame = self.read_frame()
        (responded,) = struct.unpack_from(">i", frame)
        assert responded == correlation_id, f"answer {responded} came where {correlation_id} was due"
        kind = message(made.name.replace("Request", "Response"))
        return kind.decode(frame, version=made.API_VERSION, header=True)

    def is_silent(self) -> bool:
        """Whether no unread data has arrived."""
        looking = select.poll()  # select() supports descriptors up to 1,023 only
        looking.register(self.socket, select.POLLIN)
        return not looking.poll(0)

    def send_bytes(self, data: bytes) -> None:
        """Send raw bytes."""
        self.socket.sendall(data)

    def send_frame(self, body: bytes) -> None:
        """Send bytes with a size prefix."""
        self.send_bytes(struct.pack(">i", len(body)) + body)

    def read_frame(self) -> bytes:
        """Return the next frame without its size. Raises ConnectionError if the peer has closed the connection."""
        (size,) = struct.unpack(">i", self.read_exactly(4))
        return self.read_exactly(size)

    def read_exactly(self, size: int) -> bytes:
        """Return exactly `count` bytes. Raises ConnectionError if the peer closes the connection earlier."""
        parts: list[bytes] = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionError("the peer closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def is_closed_by_peer(self) -> bool:
        """Wait for the peer to close the connection. Returns False if the peer responds instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def header(
    api_key: int, version: int, correlation_id: int, client_id: bytes | None = b"wire", *, flexible: bool = False
) -> bytes:
    """Encode a request header by hand, for API keys and versions without a message class."""
    size = -1 if client_id is None else len(client_id)
    return (
        struct.pack(">hhih", api_key, version, correlation_id, size) + (client_id or b"") + (b"\0" if flexible else b"")
    )


def produce(
    topic: str, *batches: bytes, version: int = 9, acks: int = -1, partition: int = 0, topic_id: Any = None
) -> Any:
    """Build a Produce request for one partition."""
    named = {"topic_id": topic_id} if version >= 13 else {"name": topic}
    data = {**named, "partition_data": [{"index": partition, "records": b"".join(batches)}]}
    return request("Produce", version, transactional_id=None, acks=acks, timeout_ms=10_000, topic_data=[data])


def produced(response: Any) -> Any:
    """Return the result for the only partition in a Produce response."""
    (topic,) = response.responses
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
    """Build a Fetch request for partitions of one topic, by default without a session."""
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


def fetched(response: Any) -> Any:
    """Return the result for the only partition in a Fetch response."""
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition
