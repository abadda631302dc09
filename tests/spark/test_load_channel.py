"""Claims about `pybroker_spark.load.channel`: messages of tasks arrive in order and to their end, strangers' do not."""

from __future__ import annotations

import contextlib
import queue
import secrets
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pybroker_spark.load import LoadError, channel
from pybroker_spark.load.channel import Address, Link, Listener, Message, Received
from pybroker_spark.load.channel_tls import NAME, Identity, TlsConnection, make_identity, trusting
from tests.support.conditions import wait_until

WAIT_S = 60.0
HELLO = {"type": "hello", "task": 0}
Forward = Callable[[bytes, bool], bytes]
"""Makes of bytes, and of whether they go to the driver, what is handed on."""


@contextlib.contextmanager
def between(address: Address, forward: Forward) -> Iterator[Address]:
    """The address of somebody on the way to the driver, who may read and change what goes by."""

    def carry(source: socket.socket, target: socket.socket, to_driver: bool) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                target.sendall(forward(part, to_driver))
            target.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            task, _ = server.accept()
            with task, socket.create_connection((address.host, address.port)) as driver:
                back = threading.Thread(target=carry, args=(driver, task, False))
                back.start()
                carry(task, driver, True)
                back.join()

        thread = threading.Thread(target=serve)
        thread.start()
        yield replace(address, host="127.0.0.1", port=server.getsockname()[1])
        thread.join(WAIT_S)


@contextlib.contextmanager
def stranger(address: Address) -> Iterator[socket.socket]:
    with socket.create_connection((address.host, address.port), timeout=WAIT_S) as connection:
        assert connection.recv(100), "the driver begins with its challenge"
        yield connection


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:  # closed with bytes that nobody read
        return True


def test_messages_arrive_in_order_and_the_end_after_them() -> None:
    with Listener("127.0.0.1", "127.0.0.1", 4) as listener:
        link = Link.connect(listener.address, {"type": "hello", "task": 3})
        link.send({"type": "one", "text": "ein\nzwei"})
        link.send({"type": "two"})
        link.close()
        got = [listener.received.get(timeout=WAIT_S) for _ in range(4)]
    assert got == [
        Received(3, {"type": "hello", "task": 3}),
        Received(3, {"type": "one", "text": "ein\nzwei"}),
        Received(3, {"type": "two"}),
        Received(3, None),
    ]


def test_orders_reach_those_that_they_are_for() -> None:
    with Listener("127.0.0.1", "127.0.0.1", 2) as listener:
        links = [Link.connect(listener.address, {"type": "hello", "task": task}) for task in range(2)]
        assert {listener.received.get(timeout=WAIT_S).task for _ in links} == {0, 1}
        listener.send({"type": "start"}, {1})
        listener.send({"type": "stop"})
        assert links[1].receive() == {"type": "start"}
        assert [link.receive() for link in links] == [{"type": "stop"}] * 2
    assert [link.receive() for link in links] == [None, None], "tasks learn that their driver has gone"
    for link in links:
        link.close()


@pytest.mark.parametrize(
    "first", [b"", b"no proof\n", b"0 0\n", b"\n", b"x" * 70_000, b"x" * 2000 + b"\n"], ids=range(6)
)
def test_a_connection_without_a_proof_is_closed_and_its_messages_are_dropped(first: bytes) -> None:
    with Listener("127.0.0.1", "127.0.0.1", 1) as listener:
        with stranger(listener.address) as connection:
            with contextlib.suppress(OSError):  # it may be closed by now
                connection.sendall(first)
                connection.shutdown(socket.SHUT_WR)
            assert ended(connection)
        with pytest.raises(queue.Empty):
            listener.received.get_nowait()


def test_the_key_of_another_run_opens_nothing() -> None:
    with Listener("127.0.0.1", "127.0.0.1", 1) as listener:
        other = Address(listener.address.host, listener.address.port, secrets.token_bytes(32))
        with pytest.raises(OSError, match="has not shown that it is this job's driver"):
            Link.connect(other, HELLO)
        assert listener.received.empty()


def test_a_driver_that_lacks_the_key_is_told_nothing() -> None:
    """What a task sends before the driver's proof is a number and a proof of its own."""
    received = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"0" * 32 + b"\n")
                received.extend(connection.recv(1000))
                connection.sendall(received.partition(b" ")[2])  # a proof that it has just been given

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(OSError, match="has not shown that it is this job's driver"):
            Link.connect(Address("127.0.0.1", server.getsockname()[1], b"key"), HELLO)
        thread.join(WAIT_S)
    assert b"hello" not in received
    assert received.count(b"\n") == 1


def test_the_key_is_never_sent_nor_shown() -> None:
    seen = bytearray()

    def listen(part: bytes, _: bool) -> bytes:
        seen.extend(part)
        return part

    with Listener("127.0.0.1", "127.0.0.1", 1) as listener:
        with between(listener.address, listen) as middle:
            link = Link.connect(middle, HELLO)
            assert listener.received.get(timeout=WAIT_S) == Received(0, HELLO)
            link.close()
        key = listener.address.key
        assert key not in seen
        assert key.hex().encode() not in seen
        assert key.hex() not in repr(listener.address)
        assert repr(key) not in repr(listener.address)


@pytest.mark.parametrize(
    "change",
    [lambda line: line.replace(b'"rows":1', b'"rows":9'), lambda line: line * 2, lambda line: line[: len(line) // 2]],
    ids=["changed", "repeated", "cut off"],
)
def test_a_message_that_somebody_on_the_way_has_touched_ends_the_connection(change: Callable[[bytes], bytes]) -> None:
    def forward(part: bytes, to_driver: bool) -> bytes:
        return change(part) if to_driver and b"rows" in part else part

    with Listener("127.0.0.1", "127.0.0.1", 1) as listener, between(listener.address, forward) as middle:
        link = Link.connect(middle, HELLO)
        assert listener.received.get(timeout=WAIT_S).message == HELLO
        link.send({"rows": 1})
        link._connection.shutdown(socket.SHUT_WR)
        rest = []
        while (message := listener.received.get(timeout=WAIT_S).message) is not None:
            rest.append(message)
        link.close()
    assert rest in ([], [{"rows": 1}])
    assert not rest or change(b"x") == b"xx"


def test_who_proves_nothing_in_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "_PROOF_TIMEOUT_S", 0.2)
    with Listener("127.0.0.1", "127.0.0.1", 1) as listener, stranger(listener.address) as connection:
        connection.sendall(b"0")
        assert ended(connection)


def test_many_strangers_end_each_other_and_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "_MOST_STRANGERS", 3)
    with Listener("127.0.0.1", "127.0.0.1", 1) as listener, contextlib.ExitStack() as opened:
        strangers = [opened.enter_context(stranger(listener.address)) for _ in range(4)]
        link = Link.connect(listener.address, HELLO)
        assert listener.received.get(timeout=WAIT_S).message == HELLO
        assert ended(strangers[0])
        more = [opened.enter_context(stranger(listener.address)) for _ in range(8)]
        assert all(ended(connection) for connection in (*strangers, *more[:4]))
        link.send({"type": "one"})
        assert listener.received.get(timeout=WAIT_S).message == {"type": "one"}
        for connection in more:
            connection.close()
        wait_until(lambda: not listener._strangers, within=WAIT_S, what="all strangers gone")
        link.close()


def test_a_driver_that_cannot_be_reached_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError, match=rf"the driver's channel at 127\.0\.0\.1:{port} cannot be reached from this task"):
        Link.connect(Address("127.0.0.1", port, b"key"), {"type": "hello", "task": 0})


@pytest.fixture(scope="module")
def identity() -> Identity:
    return make_identity()


def test_by_tls_nothing_that_is_sent_can_be_read_on_the_way(identity: Identity) -> None:
    seen = bytearray()

    def listen(part: bytes, _: bool) -> bytes:
        seen.extend(part)
        return part

    with Listener("127.0.0.1", "127.0.0.1", 1, identity) as listener, between(listener.address, listen) as middle:
        link = Link.connect(middle, HELLO)
        assert listener.received.get(timeout=WAIT_S) == Received(0, HELLO)
        listener.send({"type": "start"})
        assert link.receive() == {"type": "start"}
        link.send({"type": "last"})
        link.close()
        assert [listener.received.get(timeout=WAIT_S).message for _ in range(2)] == [{"type": "last"}, None]
    assert b"hello" not in seen
    assert b"type" not in seen
    assert NAME.encode() in seen, "what the task asks for is no secret"


def test_by_tls_both_ends_write_much_while_they_read(identity: Identity) -> None:
    """Messages of many TLS records, which meet: a lock that is held while a socket waits would end in both waiting."""
    messages: list[Message] = [{"type": "interval", "number": number, "text": "x" * 300_000} for number in range(20)]
    with Listener("127.0.0.1", "127.0.0.1", 1, identity) as listener:
        link = Link.connect(listener.address, HELLO)
        assert listener.received.get(timeout=WAIT_S).message == HELLO
        got: list[object] = []

        def send_all(send: Callable[[Message], None]) -> None:
            for message in messages:
                send(message)

        threads = [
            threading.Thread(target=send_all, args=(link.send,)),
            threading.Thread(target=send_all, args=(listener.send,)),
            threading.Thread(target=lambda: got.extend(link.receive() for _ in messages)),
        ]
        for thread in threads:
            thread.start()
        assert [listener.received.get(timeout=WAIT_S).message for _ in messages] == messages
        for thread in threads:
            thread.join(WAIT_S)
        assert got == messages
        link.close()


def test_a_task_takes_the_certificate_of_its_run_alone(identity: Identity) -> None:
    with Listener("127.0.0.1", "127.0.0.1", 1, identity) as listener:
        other = replace(listener.address, certificate=make_identity().certificate)
        with pytest.raises(OSError, match=r"has not shown that it is this job's driver: .*certificate verify failed"):
            Link.connect(other, HELLO)
        assert listener.received.empty()
    with Listener("127.0.0.1", "127.0.0.1", 1) as plain:
        with pytest.raises(OSError, match="has not shown that it is this job's driver"):
            Link.connect(replace(plain.address, certificate=identity.certificate), HELLO)
        assert plain.received.empty()


def test_by_tls_a_stranger_without_the_key_is_closed_and_told_nothing(identity: Identity) -> None:
    with Listener("127.0.0.1", "127.0.0.1", 1, identity) as listener:
        where = (listener.address.host, listener.address.port)
        trusts = trusting(identity.certificate)
        with socket.create_connection(where, WAIT_S) as raw, trusts.wrap_socket(raw, server_hostname=NAME) as secured:
            assert secured.version() == "TLSv1.3"
            assert len(secured.recv(1000)) == 33, "the driver's challenge, and nothing before the answer to it"
            secured.sendall(b"no proof\n")
            assert secured.recv(1000) == b""
        assert listener.received.empty()


def test_who_sends_a_handshake_byte_by_byte_is_closed_in_time(
    monkeypatch: pytest.MonkeyPatch, identity: Identity
) -> None:
    monkeypatch.setattr(channel, "_PROOF_TIMEOUT_S", 0.2)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = trusting(identity.certificate).wrap_bio(incoming, outgoing, server_hostname=NAME)
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    first = outgoing.read()
    with Listener("127.0.0.1", "127.0.0.1", 1, identity) as listener:
        where = (listener.address.host, listener.address.port)
        with socket.create_connection(where, WAIT_S) as slow:
            slow.settimeout(0.01)
            sent, closed = 0, False
            while not closed and sent < len(first) - 1:
                with contextlib.suppress(TimeoutError):
                    closed = closed_after(slow, first[sent : sent + 1])
                sent += 1
            assert closed, f"all of {sent} bytes were waited for"


def closed_after(connection: socket.socket, part: bytes) -> bool:
    """Raises TimeoutError where the connection goes on."""
    try:
        connection.sendall(part)
    except (BrokenPipeError, ConnectionResetError):
        return True
    return ended(connection)


def test_the_key_is_in_no_file_and_in_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    loaded: list[str] = []
    monkeypatch.setattr(
        "ssl.SSLContext.load_cert_chain", lambda _self, file, password: loaded.append(Path(file).read_text())
    )
    identity = make_identity()
    assert "BEGIN ENCRYPTED PRIVATE KEY" in loaded[0]
    assert "BEGIN PRIVATE KEY" not in loaded[0]
    assert list(tmp_path.iterdir()) == []
    assert "PRIVATE KEY" not in repr(identity) + identity.certificate
    assert "CERTIFICATE" not in repr(Address("driver", 1, b"key", identity.certificate))


def test_without_the_package_that_makes_certificates_the_load_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(LoadError, match=r"pip install 'cryptography>=42'"):
        make_identity()


def test_a_connection_that_ends_in_its_handshake_is_an_error(identity: Identity) -> None:
    one, other = socket.socketpair()
    other.close()
    with one, pytest.raises(OSError, match="in the handshake"):
        TlsConnection(one, identity.context, is_server=True).shake_hands(None)
