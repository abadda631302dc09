"""Bytes that no client should send: an exact error or a closed connection with one line in the log.

After each of them the broker lives, its memory is bounded, and a connection that was open before still works.
"""

from __future__ import annotations

import itertools
import random
import re
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pybroker.handlers.registry import registered_apis
from pybroker.protocol.codec import encode
from pybroker.protocol.header import flexible
from tests.support.batches import GZIP, Batch, Record, batch_of
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, header, produce, produced

pytestmark = pytest.mark.process

TOPIC = "unharmed"
MEBIBYTE = 1 << 20
PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS = 0, 1, 2, 3, 18, 19
UNSUPPORTED_VERSION = 35
_numbers = itertools.count()
SERVED = {api.name: (int(api.key), api.min_version, api.max_version) for api in registered_apis().values()}


@pytest.fixture(scope="module")
def sturdy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all the bad input of this module, with a topic. It serves every API."""
    served = {"telemetry.receivers": "last-values"}
    with BrokerProcess(tmp_path_factory.mktemp("bad-input") / "data", served) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            made = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
            assert wire.call("CreateTopics", 7, topics=[made], timeout_ms=10_000).topics[0].error_code == 0
            assert produced(wire.query(produce(TOPIC, batch_of(b"here")))).error_code == 0
        yield broker


@pytest.fixture(autouse=True)
def bystander(sturdy: BrokerProcess) -> Iterator[Wire]:
    """A connection that was open before, and must still work in both planes after whatever a test does."""
    before = sturdy.resident_bytes()
    with Wire(sturdy.bootstrap_servers) as wire:
        assert wire.call("ApiVersions", 0).error_code == 0
        yield wire
        assert sturdy.is_running(), sturdy.log[-3000:]
        assert wire.call("Metadata", 12, topics=[{"name": TOPIC}]).topics[0].error_code == 0
        assert fetched(wire.query(fetch(TOPIC))).records
    assert sturdy.resident_bytes() < before + 48 * MEBIBYTE
    assert "panicked" not in sturdy.log
    assert "Traceback" not in sturdy.log


def closes_with_one_line(broker: BrokerProcess, send: Callable[[Wire], None]) -> str:
    """Expect the connection to be closed, and the broker to log one line about it; returns the line.

    An address has one line a minute for each cause, so that each call has another address of 127/8.
    """
    already, number = len(broker.log), next(_numbers)
    with Wire(broker.bootstrap_servers, source=f"127.1.{number // 250}.{number % 250 + 1}") as wire:
        send(wire)
        peer = f"{wire.socket.getsockname()[0]}:{wire.socket.getsockname()[1]}"
        assert wire.is_closed_by_peer()
    port = peer.rsplit(":", 1)[1]
    return wait_until(lambda: _only_line_about(broker.log[already:], port), within=60, what=f"one line about {peer}")


def _only_line_about(log: str, port: str) -> str:
    lines = [line for line in log.splitlines() if re.search(rf":{port}\b", line)]
    assert len(lines) <= 1, lines
    return lines[0] if lines else ""


CLIENT_HELLO = bytes.fromhex("16030100f8010000f40303")
"""The head of one, as RFC 8446 (4.1.2, 5.1) has it."""


@pytest.mark.parametrize(
    ("host", "sent"),
    [
        ("127.2.0.1", CLIENT_HELLO),
        ("127.2.0.2", struct.pack(">i", 2**31 - 1)),
        ("127.2.0.3", struct.pack(">i", len(header(999, 0, 1))) + header(999, 0, 1)),
    ],
)
def test_a_client_that_connects_again_and_again_has_one_line_a_minute(
    sturdy: BrokerProcess, host: str, sent: bytes
) -> None:
    def send(data: bytes) -> None:
        with Wire(sturdy.bootstrap_servers, source=host) as wire:
            wire.send_bytes(data)
            assert wire.is_closed_by_peer()

    for _ in range(20):
        send(sent)
    # Another cause has a line of its own, and no line of the first can follow it.
    send(struct.pack(">i", 2) + bytes(2))
    wait_until(lambda: sturdy.log.count(f"{host}:") >= 2, within=60, what=f"two lines about {host}")
    lines = [line for line in sturdy.log.splitlines() if f"{host}:" in line]
    assert len(lines) == 2, lines


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 1, 7])
def test_a_size_that_cannot_be_closes_the_connection(sturdy: BrokerProcess, size: int) -> None:
    line = closes_with_one_line(sturdy, lambda wire: wire.send_bytes(struct.pack(">i", size) + bytes(max(size, 0))))
    assert str(size) in line


@pytest.mark.parametrize("size", [100 * MEBIBYTE + 1, 2**31 - 1, 0x47455420])
def test_a_size_over_the_limit_closes_the_connection(sturdy: BrokerProcess, size: int) -> None:
    """The last of them is `GET `, which a web browser says."""
    line = closes_with_one_line(sturdy, lambda wire: wire.send_bytes(struct.pack(">i", size) + b"/ HTTP/1.1\r\n"))
    assert str(size) in line


@pytest.mark.parametrize("key", [-1, 93, 4, 999, 32767, -32768])
def test_an_unknown_api_key_closes_the_connection(sturdy: BrokerProcess, key: int) -> None:
    line = closes_with_one_line(sturdy, lambda wire: wire.send_frame(header(key, 0, 1)))
    assert str(key) in line


@pytest.mark.parametrize("name", [name for name in SERVED if name != "ApiVersions"])
@pytest.mark.parametrize("beyond", ["below", "above", "far above", "negative"])
def test_a_version_that_is_not_served_closes_the_connection(sturdy: BrokerProcess, name: str, beyond: str) -> None:
    key, lowest, highest = SERVED[name]
    version = {"below": lowest - 1, "above": highest + 1, "far above": 32767, "negative": -5}[beyond]
    line = closes_with_one_line(sturdy, lambda wire: wire.send_frame(header(key, version, 1, flexible=True) + bytes(8)))
    assert str(version) in line


@pytest.mark.parametrize("name", SERVED)
def test_a_body_of_noise_is_an_error_or_a_closed_connection(sturdy: BrokerProcess, name: str) -> None:
    key, lowest, highest = SERVED[name]
    noise = random.Random(key)
    for version in range(lowest, highest + 1):
        for length in (0, 1, 5, 60, 3000):
            with Wire(sturdy.bootstrap_servers) as wire:
                head = header(key, version, 77, flexible=flexible(key, version))
                wire.send_frame(head + noise.randbytes(length))
                wire.socket.shutdown(socket.SHUT_WR)
                response = drain(wire)
                assert response == b"" or response[4:8] == struct.pack(">i", 77)


def drain(wire: Wire) -> bytes:
    """Everything that the peer sends until it closes."""
    parts = []
    try:
        while part := wire.socket.recv(1 << 16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("name", SERVED)
def test_a_real_request_cut_anywhere_is_refused_and_nothing_is_taken_for_it(sturdy: BrokerProcess, name: str) -> None:
    key, _, version = SERVED[name]
    if name in ("Produce", "Fetch"):
        made = produce(TOPIC, batch_of(b"never"), version=12) if name == "Produce" else fetch(TOPIC, version=12)
        made.with_header(correlation_id=5, client_id="wire")
        whole = bytes(made.encode(header=True, framed=True))[4:]
    else:
        request = next(api.request_type for api in registered_apis().values() if api.name == name)()
        whole = header(key, version, 5, flexible=flexible(key, version)) + encode(request, version)
    for length in range(10, len(whole), max(1, len(whole) // 25)):
        with Wire(sturdy.bootstrap_servers) as wire:
            wire.send_frame(whole[:length])
            wire.socket.shutdown(socket.SHUT_WR)
            drain(wire)
    with Wire(sturdy.bootstrap_servers) as wire:
        assert fetched(wire.query(fetch(TOPIC))).high_watermark == 1


ABSURD = {
    "an array of two thousand million topics": (METADATA, 1, struct.pack(">i", 2**31 - 1)),
    "an array of a negative length": (METADATA, 1, struct.pack(">i", -7)),
    "an array of more than a million": (METADATA, 12, b"\xc2\x84\x3d" + bytes(100)),
    "a compact array of four thousand million": (METADATA, 12, b"\xff\xff\xff\xff\x0f" + bytes(100)),
    "a varint that does not end": (METADATA, 12, b"\xff" * 50),
    "a string longer than the frame": (METADATA, 1, struct.pack(">ih", 1, 30_000) + b"short"),
    "a string of a negative length": (METADATA, 1, struct.pack(">ih", 1, -9)),
    "topics of a creation beyond all bounds": (CREATE_TOPICS, 4, struct.pack(">i", 2**31 - 1) + bytes(50)),
    "partitions beyond all bounds": (LIST_OFFSETS, 1, struct.pack(">iih", -1, 1, 1) + b"t" + struct.pack(">i", 2**30)),
    "produce topics beyond all bounds": (PRODUCE, 3, struct.pack(">hhii", -1, 1, 1000, 2**31 - 1)),
    "produce records longer than the frame": (
        PRODUCE,
        3,
        struct.pack(">hhiih", -1, 1, 1000, 1, 1) + b"t" + struct.pack(">iii", 1, 0, 2**31 - 1),
    ),
    "fetch topics beyond all bounds": (FETCH, 4, struct.pack(">iiiibi", -1, 0, 1, 1, 0, 2**31 - 1)),
    "fetch partitions beyond all bounds": (
        FETCH,
        4,
        struct.pack(">iiiibih", -1, 0, 1, 1, 0, 1, 1) + b"t" + struct.pack(">i", 2**31 - 1),
    ),
}


@pytest.mark.parametrize("what", ABSURD)
def test_an_absurd_length_closes_the_connection(sturdy: BrokerProcess, what: str) -> None:
    key, version, body = ABSURD[what]
    frame = header(key, version, 1, flexible=version >= 9) + body
    assert closes_with_one_line(sturdy, lambda wire: wire.send_frame(frame))


def test_more_than_ten_thousand_tagged_fields_close_the_connection(sturdy: BrokerProcess) -> None:
    tags = b"".join(bytes([0x80 | tag & 0x7F, 0x80 | tag >> 7 & 0x7F, tag >> 14, 0]) for tag in range(10_001))
    frame = header(METADATA, 12, 1) + b"\x91\x4e" + tags + b"\x01\x01\x00\x00"
    assert closes_with_one_line(sturdy, lambda wire: wire.send_frame(frame))


@pytest.mark.parametrize("size", [-2, 30_000, -32768])
def test_a_client_id_that_does_not_fit_the_frame_closes_the_connection(sturdy: BrokerProcess, size: int) -> None:
    frame = struct.pack(">hhih", METADATA, 1, 1, size)
    assert closes_with_one_line(sturdy, lambda wire: wire.send_frame(frame))


def test_random_frames_do_no_harm(sturdy: BrokerProcess) -> None:
    noise = random.Random(4)
    for number in range(1000):
        with Wire(sturdy.bootstrap_servers) as wire:
            body = noise.randbytes(noise.randrange(8, 200))
            if number % 2:
                key = noise.choice([PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS])
                body = struct.pack(">hh", key, noise.randrange(14)) + body
            wire.send_frame(body)
            wire.socket.shutdown(socket.SHUT_WR)
            drain(wire)
    assert sturdy.is_running()


def test_bytes_that_come_one_at_a_time_are_a_request_like_any_other(sturdy: BrokerProcess) -> None:
    made = produce("no-such-topic", batch_of(b"slow"))
    with Wire(sturdy.bootstrap_servers) as wire:
        made.with_header(correlation_id=1, client_id="wire")
        for byte in bytes(made.encode(header=True, framed=True)):
            wire.send_bytes(bytes([byte]))
        assert produced(wire.receive(made, 1)).error_code == 3


def test_many_large_frames_that_never_come_take_no_memory(sturdy: BrokerProcess) -> None:
    """Each connection announces 90 MiB and sends 1 KiB: what has not come is not paid for."""
    before = sturdy.resident_bytes()
    with ExitStack() as stack:
        for _ in range(100):
            wire = stack.enter_context(Wire(sturdy.bootstrap_servers))
            wire.send_bytes(struct.pack(">i", 90 * MEBIBYTE) + header(PRODUCE, 9, 1, flexible=True) + bytes(1000))
        with Wire(sturdy.bootstrap_servers) as wire:
            assert wire.call("ApiVersions", 0).error_code == 0
        assert sturdy.resident_bytes() < before + 64 * MEBIBYTE


def send_in_parts(wire: Wire, data: bytes) -> None:
    """Send all; raises TimeoutError where the peer takes nothing at all for the socket's time."""
    rest = memoryview(data)
    while rest:
        rest = rest[wire.socket.send(rest) :]


def test_a_client_that_reads_nothing_is_not_read_from(sturdy: BrokerProcess) -> None:
    """A million-byte answer is asked for again and again by a client that takes none of them."""
    topic = "big-answers"
    with Wire(sturdy.bootstrap_servers) as wire:
        made = {"name": topic, "num_partitions": 1, "replication_factor": 1}
        wire.call("CreateTopics", 7, topics=[made], timeout_ms=10_000)
        for _ in range(4):
            assert produced(wire.query(produce(topic, batch_of(b"x" * 900_000)))).error_code == 0
    before = sturdy.resident_bytes()
    with Wire(sturdy.bootstrap_servers) as greedy:
        greedy.socket.settimeout(1)
        made = fetch(topic, partition_max_bytes=4 * MEBIBYTE)
        made.with_header(correlation_id=1, client_id="wire")
        frame = bytes(made.encode(header=True, framed=True))
        with pytest.raises(TimeoutError):  # the broker stops reading from a client that does not read
            send_in_parts(greedy, frame * 200_000)
        assert sturdy.resident_bytes() < before + 64 * MEBIBYTE
        with Wire(sturdy.bootstrap_servers) as wire:
            assert fetched(wire.query(fetch(TOPIC))).records


def test_a_compressed_batch_that_would_fill_memory_is_refused_or_read_in_bounds(sturdy: BrokerProcess) -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(600)) + packer.flush()
    assert len(bomb) < MEBIBYTE
    batch = Batch((Record(b""),), attributes=GZIP, section=bomb).encode()
    with Wire(sturdy.bootstrap_servers) as wire:
        response = produced(wire.query(produce(TOPIC, batch)))
    assert response.error_code != 0


def test_a_thousand_connections_come_and_go(sturdy: BrokerProcess) -> None:
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(sturdy.bootstrap_servers)) for _ in range(1000)]
        assert {wire.call("ApiVersions", 0).error_code for wire in wires} == {0}
    wait_until(
        lambda: len(list(Path(f"/proc/{sturdy.pid}/fd").iterdir())) < 200, within=60, what="the connections are closed"
    )
