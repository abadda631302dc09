"""Our own client, librdkafka and aiokafka over every protocol of listeners that our broker serves."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import aiokafka
import confluent_kafka
import pytest

from pybroker.client import Admin, Consumer, Producer
from pybroker.client.errors import AuthenticationError, ClientError
from pybroker.testing import Broker
from tests.support.certificates import Authority, listener_settings

pytestmark = pytest.mark.timeout(180)

AUTHORITY = Authority()
PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD = "alice secret"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return AUTHORITY.write(tmp_path_factory.mktemp("trust") / "authority.pem")


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """A broker for each protocol."""
    with ExitStack() as brokers:
        started = {name: brokers.enter_context(Broker(properties=listening(name))) for name in PROTOCOLS}
        yield {name: broker.bootstrap_servers for name, broker in started.items()}


def listening(protocol: str) -> dict[str, str]:
    properties = {"listeners": f"{protocol}://127.0.0.1:0"}
    if protocol.endswith("SSL"):
        properties |= listener_settings(AUTHORITY.sign("broker"))
    if protocol.startswith("SASL"):
        jaas = f'{PLAIN} user_alice="{PASSWORD}";'
        properties |= {
            "sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": jaas,
        }
    return properties


def settings(protocol: str, trust: Path, password: str = PASSWORD) -> dict[str, str]:
    """What Kafka's clients and ours call it."""
    made = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        made |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trust)}
    if protocol.startswith("SASL"):
        made |= {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} username="alice" password="{password}";',
        }
    return made


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_our_client_reads_what_it_wrote(addresses: dict[str, str], trust: Path, protocol: str) -> None:
    server, secured = addresses[protocol], settings(protocol, trust)
    topic = f"ours-{protocol}"
    with Producer(server, secured) as producer:
        for number in range(100):
            producer.send(topic, b"%d" % number)
    reading = {**secured, "group.id": f"g-{protocol}", "auto.offset.reset": "earliest"}
    found: list[bytes | None] = []
    with Consumer(server, reading) as consumer:
        consumer.subscribe([topic])
        while len(found) < 100:
            found += [record.value for record in consumer.poll(60)]
    assert found == [b"%d" % number for number in range(100)]
    with Admin(server, secured) as admin:
        assert topic in admin.list_topics()


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_a_wrong_password_is_said_at_once(addresses: dict[str, str], trust: Path, protocol: str) -> None:
    wrong = settings(protocol, trust, "guessed")
    with Admin(addresses[protocol], wrong) as admin, pytest.raises(AuthenticationError) as raised:
        admin.list_topics()
    assert "guessed" not in str(raised.value)


def test_a_broker_that_nobody_vouches_for_is_not_spoken_to(addresses: dict[str, str], tmp_path: Path) -> None:
    other = Authority("Another").write(tmp_path / "other.pem")
    refused = {**settings("SASL_SSL", other), "request.timeout.ms": "1000", "default.api.timeout.ms": "3000"}
    with Admin(addresses["SASL_SSL"], refused) as admin, pytest.raises(ClientError):
        admin.list_topics()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_librdkafka_reads_what_it_wrote(addresses: dict[str, str], trust: Path, protocol: str) -> None:
    common = {"bootstrap.servers": addresses[protocol], "security.protocol": protocol, "ssl.ca.location": str(trust)}
    if protocol.startswith("SASL"):
        common |= {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": PASSWORD}
    producer = confluent_kafka.Producer(common)
    producer.produce("librdkafka", protocol.encode())
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer({**common, "group.id": protocol, "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    message = consumer.poll(60)
    consumer.close()
    assert message is not None
    assert message.error() is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_aiokafka_writes(addresses: dict[str, str], trust: Path, protocol: str) -> None:
    async def write() -> int:
        secured: dict[str, object] = {"security_protocol": protocol}
        if protocol.endswith("SSL"):
            secured["ssl_context"] = ssl.create_default_context(cafile=str(trust))
        if protocol.startswith("SASL"):
            secured |= {
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": "alice",
                "sasl_plain_password": PASSWORD,
            }
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=addresses[protocol], **secured)
        await producer.start()
        try:
            sent = await producer.send_and_wait("aiokafka", protocol.encode())
        finally:
            await producer.stop()
        return int(sent.offset)

    assert asyncio.run(write()) >= 0
