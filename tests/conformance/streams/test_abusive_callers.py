"""The example of docs/guides/streams-abusive-callers.md: limits, expiry, repeated requests, and a Redis that fails."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from pybroker.client import Admin, Consumer, NewTopic, Producer
from pybroker.streams import STRING, KafkaStreams, State, StreamsError
from pybroker.streams.testing import TopologyTestDriver
from tests.conformance.conftest import Server, serving
from tests.support import guides
from tests.support.conditions import wait_until
from tests.support.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.xdist_group("stream applications")

PAGE = "docs/guides/streams-abusive-callers.md"
RULE, WAITING, CONTINUING = 0, 2, 3
"""The blocks of the page that define functions. The other one runs the application."""
TOPICS = ["accepted", "blocked", "unchecked"]
BROKER = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "100",
    "group.streams.assignment.interval.ms": "0",
}
ADDRESS = "10.0.0.7"
MINUTE_MS, HALF_HOUR_MS = 60_000, 1_800_000
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def brokers() -> Iterator[Server]:
    with serving(BROKER) as server, Admin(server.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("access-log"), *map(NewTopic, TOPICS)])
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
def page(store: RedisServer) -> dict[str, Any]:
    """The names that the page defines. Its application is not started."""
    settings = {"application.id": "unused", "bootstrap.servers": "127.0.0.1:9092"}
    names: dict[str, Any] = {"settings": settings, "time": time, "KafkaStreams": KafkaStreams}
    found = [block for block in guides.blocks(PAGE) if block.language == "python"]
    for index in (RULE, WAITING, CONTINUING):
        exec(compile(found[index].code.replace("127.0.0.1:6379", store.address), str(found[index]), "exec"), names)
    return names


def this_minute() -> int:
    return time.time_ns() // 1_000_000 // MINUTE_MS * MINUTE_MS


def decisions(page: dict[str, Any], times: list[int]) -> tuple[list[str], list[str]]:
    """Process requests of one address at these times in a test driver, and return the requests by decision."""
    with TopologyTestDriver(page["topology"](), {"default.dsl.store": "in_memory"}) as driver:
        requests = driver.create_input_topic("access-log", STRING, STRING)
        for timestamp in times:
            requests.pipe_input(None, ADDRESS, timestamp=timestamp)
        accepted, blocked = (
            [str(record.timestamp) for record in driver.create_output_topic(topic, STRING, STRING).read_records()]
            for topic in ("accepted", "blocked")
        )
    return accepted, blocked


def test_requests_after_the_one_that_exceeds_the_limit_are_blocked(page: dict[str, Any], store: RedisServer) -> None:
    start = this_minute()
    times = [start + number for number in range(63)]
    assert decisions(page, times) == ([str(one) for one in times[:61]], [str(one) for one in times[61:]])
    with store.client() as client:
        assert client.get(f"blocked:{ADDRESS}") == str(start + 60)
        assert client.pexpiretime(f"blocked:{ADDRESS}") == start + 60 + HALF_HOUR_MS


def test_sixty_requests_in_each_of_two_minutes_are_accepted(page: dict[str, Any], store: RedisServer) -> None:
    start = this_minute()
    times = [start + minute * MINUTE_MS + number for minute in (0, 1) for number in range(60)]
    assert decisions(page, times) == ([str(one) for one in times], [])
    with store.client() as client:
        assert client.keys() == []


def test_requests_that_are_processed_again_have_the_same_decisions(page: dict[str, Any], store: RedisServer) -> None:
    times = [this_minute() + number for number in range(63)]
    first = decisions(page, times)
    with store.client() as client:
        written = client.get(f"blocked:{ADDRESS}"), client.pexpiretime(f"blocked:{ADDRESS}")
        assert decisions(page, times) == first
        assert (client.get(f"blocked:{ADDRESS}"), client.pexpiretime(f"blocked:{ADDRESS}")) == written


def test_a_replay_of_an_old_log_blocks_no_address(page: dict[str, Any], store: RedisServer) -> None:
    times = [this_minute() - 86_400_000 + number for number in range(63)]
    assert decisions(page, times) == ([str(one) for one in times], [])
    with store.client() as client:
        assert client.keys() == []


@pytest.fixture
def settings(brokers: Server, tmp_path: Path) -> dict[str, Any]:
    return {
        "application.id": f"callers-{next(NUMBERS)}",
        "bootstrap.servers": brokers.bootstrap_servers,
        "processing.guarantee": "exactly_once_v2",
        "auto.offset.reset": "latest",
        "state.dir": tmp_path / "state",
    }


def send(brokers: Server, address: str) -> None:
    """Send a request and wait until it is in the log."""
    with Producer(brokers.bootstrap_servers) as producer:
        producer.send("access-log", address.encode())


def await_tasks(app: KafkaStreams) -> None:
    """Wait until the application processes both subtopologies, from the ends of their topics."""

    def processes() -> bool:
        return app.state is State.RUNNING and len(app.task_metrics()) == 2

    wait_until(processes, within=60, what="both tasks run")


def await_record(brokers: Server, topic: str, value: bytes, key: str) -> Any:
    """Wait for a committed record."""
    reader = {"group.id": f"reader-{next(NUMBERS)}", "auto.offset.reset": "earliest"}
    with Consumer(brokers.bootstrap_servers, {**reader, "isolation.level": "read_committed"}) as consumer:
        consumer.subscribe([topic])

        def found() -> Any:
            return next((one for one in consumer.poll(0.2) if (one.key, one.value) == (key.encode(), value)), None)

        return wait_until(found, within=60, what=f"{topic} has {key}")


def test_an_application_stops_without_redis_and_processes_the_request_later(
    page: dict[str, Any], brokers: Server, store: RedisServer, settings: dict[str, Any]
) -> None:
    with KafkaStreams(page["topology"](), settings) as app:
        app.start()
        await_tasks(app)
        send(brokers, "10.0.1.1")
        await_record(brokers, "accepted", b"accepted", "10.0.1.1")
        store.stop()
        send(brokers, "10.0.1.2")
        with pytest.raises(StreamsError, match=r"Connection refused|Connection closed") as raised:
            app.wait(60)
        assert isinstance(raised.value.__cause__, redis.ConnectionError)
        assert app.state is State.ERROR
    store.start()
    with KafkaStreams(page["topology"](), settings) as app:
        app.start()
        await_record(brokers, "accepted", b"accepted", "10.0.1.2")


def test_an_application_that_replaces_its_thread_waits_for_redis(
    page: dict[str, Any], brokers: Server, store: RedisServer, settings: dict[str, Any]
) -> None:
    failures: list[BaseException] = []
    with KafkaStreams(page["topology"](), settings) as app:

        def handler(error: BaseException) -> Any:
            failures.append(error)
            return page["wait_for_redis"](error)

        app.set_uncaught_exception_handler(handler)
        app.start()
        await_tasks(app)
        send(brokers, "10.0.2.1")
        await_record(brokers, "accepted", b"accepted", "10.0.2.1")
        store.stop()
        send(brokers, "10.0.2.2")
        wait_until(lambda: len(failures) >= 2, within=60, what="the new thread failed too")
        store.start()
        await_record(brokers, "accepted", b"accepted", "10.0.2.2")


def test_an_application_that_continues_writes_unchecked_requests_to_dead_letters(
    page: dict[str, Any], brokers: Server, store: RedisServer, settings: dict[str, Any]
) -> None:
    lenient = settings | {"processing.exception.handler": page["skip_without_redis"]}
    with KafkaStreams(page["topology"](), lenient) as app:
        app.start()
        await_tasks(app)
        store.stop()
        send(brokers, "10.0.3.1")
        wait_until(lambda: any(one["dropped-records-total"] for one in app.metrics().values()), within=60, what="drop")
        store.start()
        send(brokers, "10.0.3.2")
        await_record(brokers, "accepted", b"accepted", "10.0.3.2")
        letter = await_record(brokers, "unchecked", b"10.0.3.1", "10.0.3.1")
    assert dict(letter.headers)["__streams.errors.exception"] == b"redis.exceptions.ConnectionError"
