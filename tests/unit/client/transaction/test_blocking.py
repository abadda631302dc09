"""Transactional producers that several threads use at once: each call ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pybroker.client import ClientError, ClosedError, Producer
from pybroker.testing import Broker
from tests.support.conditions import wait_until

_ROUNDS = 20


def test_a_producer_that_two_threads_close_at_once_is_closed() -> None:
    with Broker() as broker:
        for number in range(_ROUNDS):
            producer = Producer(broker.bootstrap_servers, {"transactional.id": f"t-{number}"})
            producer.init_transactions()
            both = threading.Barrier(2)

            def close(producer: Producer = producer, both: threading.Barrier = both) -> None:
                both.wait()
                producer.close()

            threads = [threading.Thread(target=close, daemon=True) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert [thread.is_alive() for thread in threads] == [False, False]


def is_called(producer: Producer) -> bool:
    """Whether a call waits in the loop of the transactions."""
    transactions = producer._transactions
    assert transactions is not None
    return transactions._loop is not None and bool(asyncio.all_tasks(transactions._loop))


def test_a_call_of_another_thread_ends_with_the_close() -> None:
    producer = Producer("127.0.0.1:1", {"transactional.id": "t", "max.block.ms": 600_000})
    met: list[ClientError] = []

    def begin() -> None:
        try:
            producer.init_transactions()
        except ClientError as error:
            met.append(error)

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    wait_until(lambda: is_called(producer), within=60, what="the call of the other thread")
    producer.close()
    thread.join(60)
    assert not thread.is_alive()
    assert [type(error) for error in met] == [ClosedError]


def test_calls_that_begin_with_the_close_end_with_it() -> None:
    """Also a call between the start of the thread and the hand-over of its work."""
    for _ in range(50):
        producer = Producer("127.0.0.1:1", {"transactional.id": "t", "max.block.ms": 600_000})
        both = threading.Barrier(2)
        met: list[ClientError] = []

        def begin(producer: Producer = producer, both: threading.Barrier = both, met: list[ClientError] = met) -> None:
            both.wait(60)
            try:
                producer.init_transactions()
            except ClientError as error:
                met.append(error)

        thread = threading.Thread(target=begin, daemon=True)
        thread.start()
        both.wait(60)
        producer.close()
        thread.join(60)
        assert not thread.is_alive()
        assert isinstance(met[0], ClosedError)


def test_no_call_is_taken_after_the_close() -> None:
    transactions = Producer("127.0.0.1:1", {"transactional.id": "t"})._transactions
    assert transactions is not None
    transactions.close()
    with pytest.raises(ClosedError, match="the producer is closed"):
        transactions.init(0.1)
