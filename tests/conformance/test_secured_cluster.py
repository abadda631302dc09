"""Three nodes whose every listener is secured: by certificates of both sides, and by TLS with SCRAM.

What clients can do is what they can with one broker; who may not speak is said in one line.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import kafka
import kafka.errors
import pytest

from pybench.peers.free_ports import free_ports
from pybroker.cli.main import main
from pybroker.client import Admin, NewTopic, TopicPartition
from pybroker.client.administration.acl_admin import Acl, AclPattern
from pybroker.local_cluster.cluster import LocalCluster
from pybroker.local_cluster.layout import NodePorts, build_properties
from pybroker.testing import Cluster
from pybroker.testing.certificates import Authority
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.process]

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
API_VERSIONS = bytes.fromhex("0000000b 0012 0000 00000001 0001 78")
"""A request of version 0, with its size, that every listener of plaintext answers."""
TOPIC, LITERAL, WRITE, ALLOW = 2, 3, 4, 3
RECORDS = 300


class Certificates:
    """The stores of a cluster and of its clients."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority()
        self.trust = directory / "ca.pem"
        self.trust.write_text(self.authority.pem)
        for name in ("node", "admin", "alice"):
            self.write(name, self.authority)

    def write(self, name: str, authority: Authority) -> Path:
        """Make a certificate, and write it with its key."""
        made = authority.issue(name)
        path = self.store(name)
        path.write_text(made.certificate + made.key)
        return path

    def store(self, name: str) -> Path:
        return self.directory / f"{name}.pem"

    def of_nodes(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store("node")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        }

    def client(self, name: str) -> dict[str, object]:
        """Settings of our clients."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store(name)),
        }

    def librdkafka(self, name: str) -> dict[str, object]:
        store = str(self.store(name))
        return {
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.trust),
            "ssl.certificate.location": store,
            "ssl.key.location": store,
        }


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def cluster(certificates: Certificates) -> Iterator[Cluster]:
    """Every listener asks for a certificate; nodes and the admin may do everything, others what entries say."""
    properties = {
        **certificates.of_nodes(),
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        "authorizer.class.name": STANDARD,
        "super.users": "User:CN=node;User:CN=admin",
    }
    with Cluster(3, properties=properties, client=certificates.client("admin")) as running:
        yield running


def produce(settings: dict[str, object], topic: str, count: int) -> None:
    """Write so many records, acknowledged by all replicas."""
    failed: list[object] = []
    producer = confluent_kafka.Producer({**settings, "acks": "all", "message.timeout.ms": 30_000})
    for number in range(count):
        producer.produce(topic, str(number), on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(60) == 0
    assert failed == []


def consume(settings: dict[str, object], topic: str, count: int) -> list[int]:
    """Read so many records as a member of a group."""
    consumer = confluent_kafka.Consumer({**settings, "group.id": f"{topic}-group", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    numbers: list[int] = []

    def step() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            numbers.append(int(message.value()))
        return len(numbers) >= count

    try:
        wait_until(step, within=60, what=f"{count} records of {topic}")
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return numbers


def test_nothing_acknowledged_is_lost_when_a_leader_is_killed(cluster: Cluster, certificates: Certificates) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, **certificates.librdkafka("admin")}
    with Admin(cluster.bootstrap_servers, certificates.client("admin")) as admin:
        admin.create_topics([NewTopic("kept", 1, 3)])
    produce(settings, "kept", RECORDS)
    killed = cluster.leader("kept")
    cluster.kill(killed)
    produce(settings, "kept", RECORDS)
    cluster.start(killed)
    cluster.wait_in_sync("kept")
    assert consume(settings, "kept", 2 * RECORDS) == [*range(RECORDS)] * 2


def test_a_transaction_reaches_partitions_and_offsets_on_every_broker(
    cluster: Cluster, certificates: Certificates
) -> None:
    """Markers and verification go from broker to broker by the listener that asks for certificates."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, **certificates.librdkafka("admin")}
    with Admin(cluster.bootstrap_servers, certificates.client("admin")) as admin:
        admin.create_topics([NewTopic("moved", 6, 3)])
        admin.wait_for_leaders("moved")
        assert {part.leader for part in admin.describe_topics(["moved"])[0].partitions} == {1, 2, 3}
    producer = confluent_kafka.Producer({**settings, "transactional.id": "mover"})
    producer.init_transactions(30)
    groups = [f"movers-{number}" for number in range(6)]
    for committed in (True, False):
        producer.begin_transaction()
        for partition in range(6):
            producer.produce("moved", b"1" if committed else b"0", partition=partition)
        for group in groups:
            consumer = confluent_kafka.Consumer({**settings, "group.id": group})
            offset = confluent_kafka.TopicPartition("moved", 0, 7 if committed else 8)
            producer.send_offsets_to_transaction([offset], consumer.consumer_group_metadata(), 30)
            consumer.close()
        (producer.commit_transaction if committed else producer.abort_transaction)(30)
    assert consume({**settings, "isolation.level": "read_committed"}, "moved", 6) == [1] * 6
    with Admin(cluster.bootstrap_servers, certificates.client("admin")) as admin:
        for group in groups:
            assert admin.list_group_offsets(group)[TopicPartition("moved", 0)].offset == 7


def test_a_user_does_what_entries_allow_on_every_broker(cluster: Cluster, certificates: Certificates) -> None:
    store = str(certificates.store("alice"))
    as_alice = {
        "bootstrap_servers": cluster.bootstrap_servers.split(","),
        "security_protocol": "SSL",
        "ssl_cafile": str(certificates.trust),
        "ssl_certfile": store,
        "ssl_keyfile": store,
        "enable_idempotence": False,  # would need IDEMPOTENT_WRITE or WRITE on any topic before the entry is there
    }
    with (
        Admin(cluster.bootstrap_servers, certificates.client("admin")) as admin,
        contextlib.closing(kafka.KafkaProducer(**as_alice)) as producer,
    ):
        admin.create_topics([NewTopic("hers", 3, 3)])
        with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
            producer.send("hers", b"no").get(60)
        admin.create_acls([Acl(AclPattern(TOPIC, "hers", LITERAL), "User:CN=alice", "*", WRITE, ALLOW)])

        def writes() -> bool:
            try:
                return all(producer.send("hers", b"yes", partition=one).get(60).offset >= 0 for one in range(3))
            except kafka.errors.TopicAuthorizationFailedError:
                return False

        wait_until(writes, within=60, what="the entry is in force on all leaders")


def test_no_port_of_a_node_speaks_plaintext(cluster: Cluster) -> None:
    responses = {port: knock(port) for port in ports_of(cluster)}
    assert len(responses) == 6
    assert not any(responses.values()), "a Kafka response, and no alert of TLS"


def ports_of(cluster: Cluster) -> list[int]:
    """The ports of brokers and of controllers."""
    found = []
    for broker in cluster.brokers:
        text = (cluster.directory / f"broker-{broker}" / "server.properties").read_text()
        listeners = next(line for line in text.splitlines() if line.startswith("listeners="))
        found += [int(one.rpartition(":")[2]) for one in listeners.split(",")]
    return found


def knock(port: int) -> bool:
    """Ask in plaintext, and return whether a Kafka response came."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(API_VERSIONS)
        try:
            response = connection.recv(8)
        except ConnectionResetError:
            return False
    return len(response) == 8 and response[4:] == (1).to_bytes(4)


def test_a_node_that_nobody_vouches_for_is_said_and_let_in_with_a_new_certificate(
    cluster: Cluster, certificates: Certificates
) -> None:
    """The store is read again while the node runs: it needs no restart."""
    broker = next(one for one in cluster.brokers if one != cluster.controller())
    cluster.stop(broker)
    reported = len(cluster.log(broker))
    good = certificates.store("node").read_text()
    certificates.write("node", Authority("somebody else"))
    starting = threading.Thread(target=cluster.start, args=(broker,))
    try:
        starting.start()
        # A node that has read the store again by now shows the certificate too, and is refused by this one.
        words = ("the broker refused this client's certificate", "the broker's certificate is refused")
        wait_until(
            lambda: any(one in cluster.log(broker)[reported:] for one in words),
            within=60,
            what=lambda: f"one of {words} in the log: {cluster.log(broker)[reported:]}",
        )
    finally:
        certificates.store("node").write_text(good)
        starting.join()
    assert broker in cluster.running


class Scram:
    """Three nodes that are formatted with users, and sign in to each other as one of them."""

    def __init__(self, directory: Path, certificates: Certificates) -> None:
        ports = free_ports(6)
        self.trust = certificates.trust
        login = "org.apache.kafka.common.security.scram.ScramLoginModule"
        properties = {
            **certificates.of_nodes(),
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{login} required username="node" password="node-secret";',
            "connections.max.reauth.ms": "3000",
            "authorizer.class.name": STANDARD,
            "super.users": "User:node;User:admin",
        }
        each = [NodePorts(ports[2 * number], ports[2 * number + 1]) for number in range(3)]
        self.local = LocalCluster(directory, each, properties)
        for node in self.local.nodes:
            node.data.mkdir(parents=True)
            own = build_properties(self.local.nodes, node, properties)
            node.settings.write_text("".join(f"{key}={value}\n" for key, value in own.items()))
            users = [f"SCRAM-SHA-512=[name={name},password={name}-secret]" for name in ("node", "admin")]
            options = ["-c", str(node.settings), "-t", "CQ_pg0_jSee7kJqwGGn5Kg"]
            assert main(["format", *options, "-S", users[0], "-S", users[1]]) == 0

    def client(self) -> dict[str, object]:
        return {
            "bootstrap.servers": self.local.bootstrap_servers,
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": str(self.trust),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "admin",
            "sasl.password": "admin-secret",
        }

    def log(self, node_id: int) -> str:
        return self.local.node(node_id).log.read_text()


@pytest.fixture(scope="module")
def scram(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Scram]:
    made = Scram(tmp_path_factory.mktemp("scram"), certificates)
    try:
        made.local.start()
        yield made
    finally:
        made.local.kill_all()


def test_nodes_sign_in_by_users_that_only_their_metadata_has(scram: Scram) -> None:
    """Voters know them before there is a leader, and after all of them were killed."""
    produce(scram.client(), "signed", RECORDS)
    scram.local.kill_all()
    scram.local.start()
    produce(scram.client(), "signed", RECORDS)
    assert sorted(consume(scram.client(), "signed", 2 * RECORDS)) == sorted([*range(RECORDS)] * 2)


def test_nodes_sign_in_again_before_their_sessions_end(scram: Scram) -> None:
    """Those of the log's followers and of Raft's messages alike; no connection is lost over it."""
    produce(scram.client(), "renewed", 1)
    began = {node.node_id: len(scram.log(node.node_id)) for node in scram.local.nodes}

    def reported(words: str) -> bool:
        return any(words in scram.log(node)[at:] for node, at in began.items())

    for listener in ("SASL_SSL", "CONTROLLER"):
        words = f"as User:node again by SCRAM-SHA-512 on {listener}"
        wait_until(lambda words=words: reported(words), within=60, what=words)  # type: ignore[misc]
    assert not reported("tried again")


def test_a_node_with_a_wrong_password_is_said(scram: Scram) -> None:
    node = scram.local.node(3)
    scram.local.stop_node(3)
    text, reported = node.settings.read_text(), len(scram.log(3))
    node.settings.write_text(text.replace("node-secret", "wrong"))
    scram.local.process(3).launch()
    words = "authentication by SCRAM-SHA-512 failed: Authentication failed during authentication due to invalid"
    wait_until(lambda: words in scram.log(3)[reported:], within=60, what=words)
    scram.local.kill_node(3)
    node.settings.write_text(text)
    scram.local.start_nodes([3])
