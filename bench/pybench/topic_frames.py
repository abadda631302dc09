"""Requests about topics as raw frames, in versions that every broker serves, so that only the broker's cost counts."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from pybench.peers.errors import StartError

_PAUSE_S = 0.002
_PATIENCE_S = 300.0
_CREATE_TOPICS, _METADATA, _LIST_OFFSETS = 19, 3, 2
_LATEST = -1


class Connection:
    """One connection with one request in flight at a time."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def query(self, key: int, version: int, body: bytes) -> bytes:
        """Return the bytes of the response after the correlation id, including header tags of flexible versions."""
        self._number += 1
        head = struct.pack(">hhih", key, version, self._number, -1)
        self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size, number = struct.unpack(">ii", self._read(8))
        if number != self._number:
            raise StartError(f"answer {number} to request {self._number}")
        return self._read(size - 4)

    def _read(self, size: int) -> bytes:
        buffer, filled = bytearray(size), 0
        while filled < size:
            count = self._socket.recv_into(memoryview(buffer)[filled:])
            if count == 0:
                raise ConnectionResetError("the broker closed the connection")
            filled += count
        return bytes(buffer)


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic in a Metadata response."""

    name: str
    error_code: int
    leaders: tuple[int, ...]

    def has_all_leaders(self, partitions: int) -> bool:
        """Whether all partitions exist and have leaders."""
        return self.error_code == 0 and len(self.leaders) == partitions and min(self.leaders) >= 0


def create_topics(connection: Connection, names: list[str], partitions: int) -> None:
    """Send CreateTopics version 2. Raises StartError if a topic is rejected."""
    topics = b"".join(_text(name) + struct.pack(">ihii", partitions, 1, 0, 0) for name in names)
    response = connection.query(
        _CREATE_TOPICS, 2, struct.pack(">i", len(names)) + topics + struct.pack(">ib", 60_000, 0)
    )
    reader = _Reader(response, 4)
    for _ in range(reader.take(">i")):
        name, code, _message = reader.text(), reader.take(">h"), reader.text()
        if code:
            raise StartError(f"{name} was not created: error {code}")


def topic_states(connection: Connection, names: list[str] | None) -> list[TopicState]:
    """Send Metadata version 4 for these topics or all, without auto-creation."""
    if names is None:
        wanted = struct.pack(">i", -1)
    else:
        wanted = struct.pack(">i", len(names)) + b"".join(map(_text, names))
    reader = _Reader(connection.query(_METADATA, 4, wanted + b"\0"), 4)
    for _ in range(reader.take(">i")):
        reader.skip(4)
        reader.text()
        reader.skip(4)
        reader.text()
    reader.text()
    reader.skip(4)
    return [_topic_state(reader) for _ in range(reader.take(">i"))]


def _topic_state(reader: _Reader) -> TopicState:
    code, name = reader.take(">h"), reader.text()
    reader.skip(1)
    leaders = []
    for _ in range(reader.take(">i")):
        reader.skip(6)
        leaders.append(reader.take(">i"))
        reader.skip(4 * reader.take(">i"))
        reader.skip(4 * reader.take(">i"))
    return TopicState(name, code, tuple(leaders))


def all_topics(connection: Connection) -> int:
    """Send Metadata version 12 for all topics, as modern clients do. Returns the size of the response in bytes."""
    # Header version 2 ends with tags. A null array of topics selects all topics.
    return len(connection.query(_METADATA, 12, bytes((0, 0, 0, 0, 0))))


def await_metadata(server: str) -> None:
    """Send Metadata without topics over new connections until a response arrives. Raises StartError."""
    _until(server, lambda connection: topic_states(connection, []) == [])


def await_leaders(server: str, topic: str, partitions: int) -> None:
    """Send Metadata for the topic over new connections until every partition has a leader. Raises StartError."""
    _until(server, lambda connection: has_leaders(connection, topic, partitions))


def has_leaders(connection: Connection, topic: str, partitions: int) -> bool:
    """Return whether every partition of the topic has a leader."""
    (state,) = topic_states(connection, [topic])
    return state.has_all_leaders(partitions)


def await_end(server: str, topic: str, partition: int) -> int:
    """Send ListOffsets over new connections until the leader returns the partition's end offset. Raises StartError."""
    found: list[int] = []

    def has_end(connection: Connection) -> bool:
        found.append(_end_offset(connection, topic, partition))
        return found[-1] >= 0

    _until(server, has_end)
    return found[-1]


def is_served(connection: Connection, topic: str, partitions: int) -> bool:
    """Return whether the broker leads all partitions and has their logs open."""
    # Check the last one first: a request for all of them costs the broker as much as opening some logs.
    if _end_offset(connection, topic, partitions - 1) < 0:
        return False
    return min(_end_offsets(connection, topic, range(partitions))) >= 0


def _end_offset(connection: Connection, topic: str, partition: int) -> int:
    return _end_offsets(connection, topic, [partition])[0]


def _end_offsets(connection: Connection, topic: str, partitions: Sequence[int]) -> list[int]:
    """Send ListOffsets version 1. Returns -1 for a partition with an error."""
    wanted = b"".join(struct.pack(">iq", partition, _LATEST) for partition in partitions)
    body = struct.pack(">ii", -1, 1) + _text(topic) + struct.pack(">i", len(partitions)) + wanted
    reader = _Reader(connection.query(_LIST_OFFSETS, 1, body), 4)
    reader.text()
    found = []
    for _ in range(reader.take(">i")):
        reader.skip(4)
        code, _timestamp, offset = reader.take(">h"), reader.take(">q"), reader.take(">q")
        found.append(-1 if code else offset)
    return found


def _until(server: str, holds: Callable[[Connection], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            with Connection(server) as connection:
                if holds(connection):
                    return
        except OSError:
            pass
        time.sleep(_PAUSE_S)
    raise StartError(f"{server} did not come to answer within {_PATIENCE_S:.0f} s")


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


class _Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return int(value)

    def skip(self, size: int) -> None:
        self._position += size

    def text(self) -> str:
        size = max(self.take(">h"), 0)
        self._position += size
        return self._data[self._position - size : self._position].decode()
