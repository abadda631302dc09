"""Clients of every make over SASL_SSL by each mechanism: a record is written, and read again.

A wrong password is refused to each of them, so that a pass is no listener that lets everybody in.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import aiokafka
import confluent_kafka
import kafka
import pytest

from pybench.peers.java import run_java_tool
from pybroker.client import Admin, Consumer, NewTopic, Producer
from tests.conformance.conftest import AGAINST_KAFKA
from tests.support import kafkajs, programs
from tests.support.certificates import Authority
from tests.support.conditions import wait_until
from tests.support.secured_server import MECHANISMS, PASSWORD, secured_server

pytestmark = pytest.mark.timeout(180)

_numbers = itertools.count(1)
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Entrance(NamedTuple):
    """What a client needs to come in."""

    server: str
    topic: str
    authority: Path
    mechanism: str
    password: str

    @property
    def java(self) -> dict[str, str]:
        """The settings of Kafka's own clients, and of ours."""
        module = _MODULES[self.mechanism]
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": f'{module} required username="alice" password="{self.password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }

    @property
    def librdkafka(self) -> dict[str, str]:
        """The settings of librdkafka."""
        return {
            "bootstrap.servers": self.server,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": self.mechanism,
            "sasl.username": "alice",
            "sasl.password": self.password,
            "ssl.ca.location": str(self.authority),
        }


def by_pybroker(to: Entrance) -> str:
    with Producer(to.server, to.java) as producer:
        producer.send(to.topic, b"pybroker").result()
    with Consumer(to.server, {**to.java, "group.id": to.topic, "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([to.topic])
        found = consumer.poll(60)
    return (found[0].value or b"").decode()


def by_librdkafka(to: Entrance) -> str:
    refused: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer({**to.librdkafka, "error_cb": refused.append})
    producer.produce(to.topic, b"librdkafka")

    def has_ended() -> bool:
        producer.poll(0.05)
        return len(producer) == 0 or any(
            error.code() == confluent_kafka.KafkaError._AUTHENTICATION for error in refused
        )

    wait_until(has_ended, within=60, what="the record is written or the client refused")
    if len(producer):
        producer.purge()
        return str(refused[0])
    consumer = confluent_kafka.Consumer({**to.librdkafka, "group.id": to.topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([to.topic])
    message = consumer.poll(60)
    consumer.close()
    return "" if message is None else (message.value() or b"").decode()


def by_kafka_python(to: Entrance) -> str:
    settings = {
        "bootstrap_servers": to.server,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(to.authority),
        "sasl_mechanism": to.mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": to.password,
    }
    producer = kafka.KafkaProducer(**settings)
    producer.send(to.topic, b"kafka-python").get(60)
    producer.close()
    consumer = kafka.KafkaConsumer(to.topic, auto_offset_reset="earliest", **settings)
    value = next(consumer).value
    consumer.close()
    return str(value.decode())


def by_aiokafka(to: Entrance) -> str:
    async def exchange() -> str:
        settings = {
            "bootstrap_servers": to.server,
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(to.authority)),
            "sasl_mechanism": to.mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": to.password,
        }
        producer = aiokafka.AIOKafkaProducer(**settings)
        try:
            await producer.start()
            await producer.send_and_wait(to.topic, b"aiokafka")
        finally:
            await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(to.topic, auto_offset_reset="earliest", **settings)
        await consumer.start()
        try:
            return str((await consumer.getone()).value.decode())
        finally:
            await consumer.stop()

    return asyncio.run(exchange())


def by_kcat(to: Entrance) -> str:
    # librdkafka 2.0 knows no addresses in certificates, and this broker's is advertised by one.
    named = {**to.librdkafka, "ssl.endpoint.identification.algorithm": "none"}
    settings = itertools.chain.from_iterable(("-X", f"{key}={value}") for key, value in named.items())
    kcat = [programs.program("kcat"), "-b", to.server, "-t", to.topic, *settings, "-X", "message.timeout.ms=5000"]
    written = subprocess.run([*kcat, "-P"], input="kcat", capture_output=True, text=True, timeout=60, check=False)
    if written.returncode != 0:
        return written.stderr
    read = [*kcat, "-q", "-C", "-o", "beginning", "-e"]
    return subprocess.run(read, capture_output=True, text=True, timeout=60, check=False).stdout.strip()


def librdkafka_of_kcat() -> tuple[int, ...]:
    reported = subprocess.run([programs.program("kcat"), "-V"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", reported.stdout)
    assert found is not None, reported.stdout
    return tuple(map(int, found.groups()))


def by_java(to: Entrance) -> str:
    programs.kafka_tools()
    config = to.authority.parent / f"{to.topic}.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in to.java.items()) + "default.api.timeout.ms=20000\n")
    address = ("--bootstrap-server", to.server, "--command-config", str(config), "--topic", to.topic)
    written = run_java_tool("console-producer", *address, stdin="java\n")
    if written.returncode != 0 or "uthentication" in written.stderr:
        return written.stderr
    read = run_java_tool(
        "console-consumer", *address, "--from-beginning", "--max-messages", "1", "--timeout-ms", "30000"
    )
    return read.stdout.strip() or read.stderr


def by_kafkajs(to: Entrance) -> str:
    return kafkajs.roundtrip(to.server, to.topic, to.authority, to.mechanism, to.password)


CLIENTS: dict[str, Callable[[Entrance], str]] = {
    "pybroker": by_pybroker,
    "librdkafka": by_librdkafka,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "kcat": by_kcat,
    "java": by_java,
    "kafkajs": by_kafkajs,
}
AVAILABLE = [
    pytest.param(name, marks={"java": [pytest.mark.java], "kcat": [pytest.mark.kcat]}.get(name, [])) for name in CLIENTS
]


@pytest.fixture(scope="module")
def entrance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Entrance]]:
    """Makes a topic, and what a client needs to come to it."""
    authority = Authority()
    trusted = authority.write(tmp_path_factory.mktemp("trust") / "authority.pem")
    with secured_server(authority, is_kafka=AGAINST_KAFKA) as at, Admin(at("PLAINTEXT")) as admin:

        def make(mechanism: str, password: str = PASSWORD) -> Entrance:
            topic = f"signed-in-{next(_numbers)}"
            admin.create_topics([NewTopic(topic, 1, 1)])
            return Entrance(at("SASL_SSL"), topic, trusted, mechanism, password)

        yield make


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", AVAILABLE)
def test_a_client_signs_in_by_a_mechanism(entrance: Callable[..., Entrance], client: str, mechanism: str) -> None:
    if client == "kcat" and mechanism.startswith("SCRAM") and librdkafka_of_kcat() < (2, 6, 1):
        pytest.skip("its librdkafka is older than 2.6.1: the nonce it sends is none of RFC 5802 (CVE-2024-56128)")
    assert CLIENTS[client](entrance(mechanism)) == client


# kafka-python tries again for half a minute, and says then that there is no server; aiokafka says that at once.
@pytest.mark.parametrize("client", [one for one in AVAILABLE if one.values[0] not in ("kafka-python", "aiokafka")])
def test_a_wrong_password_is_refused(entrance: Callable[..., Entrance], client: str) -> None:
    try:
        reported = CLIENTS[client](entrance("SCRAM-SHA-512", "guessed"))
    except Exception as error:  # noqa: BLE001  every client has its own
        reported = str(error) or repr(error)
    assert reported != client
    assert "uthentication" in reported, reported
    assert "guessed" not in reported
