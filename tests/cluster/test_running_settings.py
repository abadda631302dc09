"""Threads and listeners of a broker that change while it serves."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from pybroker.client import Admin, Consumer, NewTopic, Producer
from pybroker.client.administration.topics import BROKER, DELETE, SET, ConfigChange
from pybroker.client.errors import BrokerError, ClientError
from pybroker.protocol.errors import ErrorCode
from tests.support import kafka_tools, programs
from tests.support.certificates import Authority, listener_settings
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire

WITHIN_S = 60
EACH_STEP = 50
THREADS = "num.network.threads"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("running") / "data", {"node.id": "1"}) as running:
        yield running


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


def threads(broker: BrokerProcess) -> int:
    """How many network threads the broker has."""
    names = []
    for task in Path(f"/proc/{broker.pid}/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:  # It has ended.
            continue
    return sum(re.fullmatch(r"network-\d+", name) is not None for name in names)


class Load:
    """A producer that tries nothing twice, and a consumer: what they have done, and what has failed."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._to = bootstrap_servers
        self.sent = self.received = 0
        self.errors: list[Exception] = []
        self._done, self._all_sent = threading.Event(), threading.Event()
        self._working = [threading.Thread(target=self._run, args=(work,)) for work in (self._produce, self._consume)]

    def __enter__(self) -> Load:
        for thread in self._working:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        producing, consuming = self._working
        producing.join(WITHIN_S)
        self._all_sent.set()
        consuming.join(WITHIN_S)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (ClientError, AssertionError, TimeoutError) as error:
            self.errors.append(error)

    def _produce(self) -> None:
        with Producer(self._to, {"acks": "all", "retries": "0", "enable.idempotence": "false"}) as producer:
            while not self._done.is_set():
                producer.send("t", b"%d" % self.sent).result(WITHIN_S)
                self.sent += 1

    def _consume(self) -> None:
        with Consumer(self._to, {"group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe(["t"])
            while not self._all_sent.is_set() or self.received < self.sent:
                for record in consumer.poll(0.5):
                    assert record.value == b"%d" % self.received
                    self.received += 1

    def goes_on(self, after: int) -> bool:
        """Whether as many records came as make a step; fails where something has."""
        assert self.errors == []
        return self.received >= after + EACH_STEP


def test_a_producer_and_a_consumer_go_on_while_network_threads_come_and_go(broker: BrokerProcess, admin: Admin) -> None:
    admin.create_topics([NewTopic("t", 1, 1)])
    with Load(broker.bootstrap_servers) as load:
        for count in (6, 3, 1, 2):
            admin.alter_configs("1", [ConfigChange(THREADS, str(count), SET)], BROKER)
            wait_until(partial(has_threads, broker, count), within=WITHIN_S, what=f"there are {count} network threads")
            wait_until(partial(load.goes_on, load.received), within=WITHIN_S, what="records come")
        admin.alter_configs("1", [ConfigChange(THREADS, None, DELETE)], BROKER)
        wait_until(partial(has_threads, broker, 3), within=WITHIN_S, what="there are 3 network threads again")
    assert load.errors == []
    assert load.received == load.sent >= 4 * EACH_STEP


def has_threads(broker: BrokerProcess, count: int) -> bool:
    return threads(broker) == count


@pytest.mark.java
def test_kafkas_tool_changes_them_in_kafkas_steps(broker: BrokerProcess) -> None:
    programs.kafka_tools()
    changed = ("--bootstrap-server", broker.bootstrap_servers, "--alter", "--broker", "1")
    refused = kafka_tools.run("configs", *changed, "--add-config", f"{THREADS}=7")
    assert refused.returncode == 1
    words = f"for {THREADS}=7, value should not be greater than double the current value 3"
    assert f"InvalidRequestException: Dynamic thread count update validation failed {words}" in refused.stderr
    assert threads(broker) == 3
    assert kafka_tools.run("configs", *changed, "--add-config", f"{THREADS}=4").returncode == 0
    wait_until(partial(has_threads, broker, 4), within=WITHIN_S, what="there are 4 network threads")
    assert kafka_tools.run("configs", *changed, "--delete-config", THREADS).returncode == 0
    wait_until(partial(has_threads, broker, 3), within=WITHIN_S, what="there are 3 network threads")


def listening(broker: BrokerProcess, *names: str) -> str:
    """The value of `listeners` with the broker's first one and these, on any free port."""
    return ",".join([f"PLAINTEXT://{broker.bootstrap_servers}", *(f"{name}://127.0.0.1:0" for name in names)])


def ports(broker: BrokerProcess) -> dict[str, int]:
    """The ports of the broker's listeners, by name, as its log has them."""
    return {name: int(port) for name, port in re.findall(r"Opened listener (\S+) at \S+:(\d+)", broker.log)}


def test_a_listener_comes_and_goes_and_others_serve_on(broker: BrokerProcess, admin: Admin) -> None:
    both = [
        ConfigChange("listeners", listening(broker, "INNER"), SET),
        ConfigChange("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT", SET),
    ]
    admin.alter_configs("1", both, BROKER)
    port = wait_until(lambda: ports(broker).get("INNER"), within=WITHIN_S, what="the new listener is open")
    address = f"127.0.0.1:{port}"

    def is_named() -> bool:
        with Wire(address) as wire:
            (named,) = wire.call("Metadata", 12, topics=[]).brokers
            return (named.host, named.port) == ("127.0.0.1", port)

    wait_until(lambda: "listeners INNER, PLAINTEXT" in broker.log, within=WITHIN_S, what="it is registered")
    assert is_named()
    with Producer(address, {"acks": "all"}) as producer:
        producer.send("u", b"x").result(WITHIN_S)
    with Wire(address) as wire, Wire(broker.bootstrap_servers) as other:
        admin.alter_configs("1", [ConfigChange(one.name, None, DELETE) for one in both], BROKER)
        assert wire.is_closed_by_peer()
        assert other.call("ApiVersions", 3, client_software_name="t", client_software_version="1").error_code == 0
    with pytest.raises(ConnectionRefusedError):
        Wire(address).__enter__()


def test_a_listener_comes_with_its_certificate(broker: BrokerProcess, admin: Admin) -> None:
    certificate = listener_settings(Authority().sign("broker"))
    changes = [
        ConfigChange("listeners", listening(broker, "SECRET"), SET),
        ConfigChange("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,SECRET:SSL", SET),
        *(ConfigChange(f"listener.name.secret.{name}", text, SET) for name, text in certificate.items()),
    ]
    admin.alter_configs("1", changes, BROKER)
    port = wait_until(lambda: ports(broker).get("SECRET"), within=WITHIN_S, what="the new listener is open")
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with trusting.wrap_socket(socket.create_connection(("127.0.0.1", port))) as connection:
        assert connection.getpeercert(binary_form=True)
    admin.alter_configs("1", [ConfigChange(one.name, None, DELETE) for one in changes], BROKER)


def test_what_cannot_change_is_refused_and_nothing_is_different(broker: BrokerProcess, admin: Admin) -> None:
    other = f"PLAINTEXT://127.0.0.1:{broker.port + 1}"
    for name, value, words in (
        ("listeners", other, "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT)"),
        ("listeners", "OTHER://127.0.0.1:0", "expected a protocol for OTHER in listener.security.protocol.map"),
        ("num.network.threads", "65", "num.network.threads=65: expected a whole number from 1 to 64"),
        ("advertised.listeners", other, "Cannot update these configs dynamically: [advertised.listeners]"),
    ):
        with pytest.raises(BrokerError, match=re.escape(words)) as refused:
            admin.alter_configs("1", [ConfigChange(name, value, SET)], BROKER)
        assert refused.value.code is ErrorCode.INVALID_REQUEST
        assert admin.describe_configs("1", BROKER)[name].value != value
