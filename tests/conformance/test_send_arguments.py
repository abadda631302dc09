"""Arguments of `send` that cannot be meant: the error names the argument, its value and a right one."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pybroker.client import AsyncProducer, Producer
from pybroker.client.errors import ClientError, ClosedError
from tests.support.conditions import wait_until
from tests.support.scripted_broker import HELD, ScriptedBroker

NOT_LEADER = 6
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"topic": b"t", "value": b"x"}, TypeError, r"topic=b't': must be a str, such as \"orders\""),
    ({"topic": None, "value": b"x"}, TypeError, r"topic=None: must be a str, such as \"orders\""),
    (
        {"topic": "t", "value": "text"},
        TypeError,
        "value must be bytes or None, not str: encode it, or give a value_ser",
    ),
    ({"topic": "t", "value": b"x", "key": 1}, TypeError, "key must be bytes or None, not int: encode it"),
    ({"topic": "t", "value": b"x", "partition": -2}, ValueError, "partition=-2: must be at least 0, or -1 to have the"),
    ({"topic": "t", "value": b"x", "timestamp_ms": -1}, ValueError, "timestamp_ms=-1: must be at least 0, or None"),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), WRONG)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(kind, match=text):
        producer.send(**arguments)


@pytest.mark.parametrize(("arguments", "kind", "text"), WRONG)
def test_a_wrong_argument_is_named_over_asyncio(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    async def send() -> None:
        async with AsyncProducer("127.0.0.1:1") as producer:
            await producer.send(**arguments)

    with pytest.raises(kind, match=text):
        asyncio.run(send())


def test_types_tell_bytes_from_text() -> None:
    """mypy reads this: an error that is not there is one of its own (warn_unused_ignores)."""
    with Producer("127.0.0.1:1") as plain, pytest.raises(TypeError):
        plain.send("t", "text")  # type: ignore[arg-type]
    with Producer("127.0.0.1:1") as plain, pytest.raises(TypeError):
        plain.send("t", b"x", "key")  # type: ignore[arg-type]
    encoding = Producer("127.0.0.1:1", {"max.block.ms": 0}, value_serializer=str.encode)
    with encoding, pytest.raises(ClientError):
        encoding.send("t", "text")


def test_a_send_that_waits_for_memory_learns_of_the_close() -> None:
    settings = {**HELD, "linger.ms": 0, "buffer.memory": 2000, "batch.size": 1000, "max.block.ms": 60_000}
    met: list[Exception] = []

    def send(producer: Producer) -> None:
        try:
            while True:
                producer.send("t", b"x" * 800)
        except ClientError as error:
            met.append(error)

    with ScriptedBroker([NOT_LEADER] * 10) as broker:
        producer = Producer(broker.bootstrap_servers, settings)
        sender = threading.Thread(target=send, args=(producer,))
        sender.start()
        is_full = lambda: producer.metrics()["buffer-available-bytes"] < 1000  # noqa: E731
        wait_until(is_full, within=60, what="a full buffer")
        with pytest.raises(ClientError, match="still unacknowledged"):
            producer.close(0)
        sender.join(60)
    assert [type(error) for error in met] == [ClosedError]
