"""Claims about `pybroker_spark.load.channel`: messages of tasks arrive in order and to their end, strangers' do not."""

from __future__ import annotations

import json
import queue
import socket

import pytest

from pybroker_spark.load.channel import Address, Link, Listener, Received

WAIT_S = 10.0


def test_messages_arrive_in_order_and_the_end_after_them() -> None:
    with Listener("127.0.0.1", "127.0.0.1") as listener:
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
    with Listener("127.0.0.1", "127.0.0.1") as listener:
        links = [Link.connect(listener.address, {"type": "hello", "task": task}) for task in range(2)]
        assert {listener.received.get(timeout=WAIT_S).task for _ in links} == {0, 1}
        listener.send({"type": "start"}, {1})
        listener.send({"type": "stop"})
        assert links[1].receive() == {"type": "start"}
        assert [link.receive() for link in links] == [{"type": "stop"}] * 2
    assert [link.receive() for link in links] == [None, None], "tasks learn that their driver has gone"
    for link in links:
        link.close()


@pytest.mark.parametrize("first", [b"", b"no json\n", b"[]\n", b'{"task":0}\n', b'{"token":"x","task":0}\n'])
def test_a_connection_without_the_word_is_closed_and_its_messages_are_dropped(first: bytes) -> None:
    with Listener("127.0.0.1", "127.0.0.1") as listener:
        with socket.create_connection((listener.address.host, listener.address.port), timeout=WAIT_S) as stranger:
            stranger.sendall(first)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(1) == b""
        with pytest.raises(queue.Empty):
            listener.received.get_nowait()


def test_a_line_that_is_cut_off_is_no_message() -> None:
    with Listener("127.0.0.1", "127.0.0.1") as listener:
        hello = json.dumps({"token": listener.address.token, "task": 0}).encode()
        with socket.create_connection((listener.address.host, listener.address.port), timeout=WAIT_S) as task:
            task.sendall(hello + b'\n{"type":"interval"')
        assert [listener.received.get(timeout=WAIT_S).message for _ in range(2)] == [{"task": 0}, None]


def test_a_driver_that_cannot_be_reached_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError, match=rf"the driver's channel at 127\.0\.0\.1:{port} cannot be reached from this task"):
        Link.connect(Address("127.0.0.1", port, "word"), {"type": "hello", "task": 0})
