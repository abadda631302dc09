"""Logins by GSSAPI with tickets of a real KDC: single messages, and real clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import kafka
import pytest

from pybench.peers.free_ports import free_ports
from pybench.peers.java import run_java_tool
from pybroker.client import Admin, NewTopic, Producer
from pybroker.client.administration.acl_admin import Acl, AclPattern
from pybroker.client.errors import AuthenticationError
from pybroker.testing import Broker, Cluster
from tests.conformance.sasl_clients import NONE, SASL_AUTHENTICATION_FAILED, handshake, token
from tests.support import kdc, programs
from tests.support.conditions import wait_until
from tests.support.kdc import REALM, Realm
from tests.support.wire import Wire

pytestmark = pytest.mark.timeout(300)

MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
RULES = r"RULE:[2:$1-$2](batch-.*)s/batch-(.*)/$1/U,DEFAULT"
OFFER = b"\1\0\0\0"
NOBODYS = "of-nobody"
"""A topic that a super user would see."""


class Server(NamedTuple):
    """A broker that asks for tickets, and its realm."""

    address: str
    plain: str
    realm: Realm


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with kdc.realm(tmp_path_factory.mktemp("realm")) as realm:
        keys = realm.key_table("kafka/localhost")
        for name in ("alice", "batch/jobs", "other/localhost"):
            realm.key_table(name)
        port, plain_port = free_ports(2)
        given = {
            "listeners": f"SASL://localhost:{port},PLAINTEXT://127.0.0.1:{plain_port}",
            "advertised.listeners": f"SASL://localhost:{port},PLAINTEXT://127.0.0.1:{plain_port}",
            "listener.security.protocol.map": "SASL:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.principal.to.local.rules": RULES,
            "listener.name.sasl.gssapi.sasl.jaas.config": (
                f'{MODULE} keyTab="{keys}" principal="kafka/localhost@{REALM}";'
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        with Broker(properties=given), Admin(f"127.0.0.1:{plain_port}") as admin:
            admin.create_topics([NewTopic(NOBODYS, 1)])
            yield Server(f"localhost:{port}", f"127.0.0.1:{plain_port}", realm)


def context(server: Server, client: str, service: str = "kafka/localhost") -> Any:
    """A client's security context, for a ticket that the KDC gives for a key table's principal."""
    import gssapi

    def name(principal: str) -> Any:
        return gssapi.Name(f"{principal}@{REALM}", gssapi.NameType.kerberos_principal)

    keys = server.realm.directory / f"{client.replace('/', '-')}.keytab"
    store = {"client_keytab": str(keys), "ccache": f"MEMORY:{client}"}
    credentials = gssapi.Credentials(name=name(client), usage="initiate", store=store)
    flags = [gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity]
    kerberos = gssapi.MechType.kerberos
    return gssapi.SecurityContext(name=name(service), creds=credentials, usage="initiate", mech=kerberos, flags=flags)


def offered(wire: Wire, opened: Any) -> None:
    """Bring an exchange as far as the broker's offer of layers: none."""
    assert handshake(wire, "GSSAPI").error_code == NONE
    response = token(wire, opened.step())
    assert response.error_code == NONE
    assert opened.step(response.auth_bytes) is None
    assert opened.complete, "the broker has proved itself as well"
    response = token(wire, b"")
    assert opened.unwrap(response.auth_bytes).message == OFFER


@contextmanager
def proved(server: Server, client: str, wanted: bytes = b"") -> Iterator[Wire]:
    opened = context(server, client)
    with Wire(server.address) as wire:
        offered(wire, opened)
        response = token(wire, opened.wrap(OFFER + wanted, False).message)
        assert (response.error_code, response.auth_bytes) == (NONE, b"")
        yield wire


@pytest.mark.parametrize(("client", "user"), [("alice", "alice"), ("batch/jobs", "JOBS")])
def test_who_has_a_ticket_is_the_user_that_the_rules_say(server: Server, client: str, user: str) -> None:
    with Admin(server.plain) as admin:
        topic = f"of-{user}"
        admin.create_topics([NewTopic(topic, 1)])
        admin.create_acls([Acl(AclPattern(2, topic, 3), f"User:{user}", "*", 8, 3)])  # may describe it
    with proved(server, client) as wire:
        visible = [one.name for one in wire.call("Metadata", 9, topics=None).topics]
    assert topic in visible
    assert NOBODYS not in visible


def test_whoever_a_client_asks_to_be_it_is_itself(server: Server) -> None:
    with proved(server, "batch/jobs", b"ANONYMOUS") as wire:
        assert NOBODYS not in [one.name for one in wire.call("Metadata", 9, topics=None).topics]


def test_a_ticket_is_taken_once(server: Server) -> None:
    first = context(server, "alice").step()
    with Wire(server.address) as wire:
        handshake(wire, "GSSAPI")
        assert token(wire, first).error_code == NONE
    with Wire(server.address) as wire:
        handshake(wire, "GSSAPI")
        response = token(wire, first)
        assert response.error_code == SASL_AUTHENTICATION_FAILED
        assert "invalid credentials with SASL mechanism GSSAPI" in response.error_message
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize("service", ["other/localhost", None], ids=["another service's ticket", "rubbish"])
def test_what_is_no_ticket_for_this_broker_is_refused(server: Server, service: str | None) -> None:
    first = b"rubbish" if service is None else context(server, "alice", service).step()
    with Wire(server.address) as wire:
        handshake(wire, "GSSAPI")
        assert token(wire, first).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize("choice", [b"\2\0\0\0", b"\1"])
def test_a_layer_that_is_not_offered_is_refused(server: Server, choice: bytes) -> None:
    opened = context(server, "alice")
    with Wire(server.address) as wire:
        offered(wire, opened)
        assert token(wire, opened.wrap(choice, False).message).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


def test_kafka_python_logs_in_by_a_ticket(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(server.realm.directory / "alice.keytab"))
    monkeypatch.setenv("KRB5CCNAME", "MEMORY:kafka-python")
    admin = kafka.KafkaAdminClient(
        bootstrap_servers=server.address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="kafka",
        sasl_kerberos_domain_name="localhost",
    )
    assert isinstance(admin.list_topics(), list)
    admin.close()


def test_this_projects_clients_log_in_by_a_ticket(server: Server) -> None:
    keys = server.realm.directory / "batch-jobs.keytab"
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f'{MODULE} keyTab="{keys}" principal="batch/jobs@{REALM}";',
    }
    with Admin(server.plain) as admin:
        admin.create_topics([NewTopic("sent", 1)])
        admin.wait_for_leaders("sent")
        pattern = AclPattern(2, "sent", 3)
        admin.create_acls([Acl(pattern, "User:JOBS", "*", 2, 3)])  # all
    with Admin(server.address, given) as admin:
        assert "sent" in (listed := admin.list_topics())
        assert NOBODYS not in listed
    with Producer(server.address, given) as producer:
        assert producer.send("sent", b"by the native engine").result(60).offset == 0
    wrong = given | {"sasl.kerberos.service.name": "nobody"}
    refused = pytest.raises(AuthenticationError, match=r"authentication by GSSAPI failed: .*nobody")
    with Admin(server.address, wrong) as admin, refused:
        admin.list_topics()


@pytest.mark.process
def test_nodes_sign_in_to_each_other_by_tickets(server: Server) -> None:
    """Voters, brokers that ask them, and followers; again before their sessions end."""
    keys = server.realm.key_table("kafka/127.0.0.1")
    login = f'{MODULE} keyTab="{keys}" principal="kafka/127.0.0.1@{REALM}";'
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": login,
    }
    nodes = {
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "gssapi.sasl.jaas.config": login,
        "connections.max.reauth.ms": "3000",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:kafka",
    }
    with Cluster(3, properties=nodes, client=client) as cluster, Admin(cluster.bootstrap_servers, client) as admin:
        admin.create_topics([NewTopic("kept", 3, 3, configs={"min.insync.replicas": "3"})])
        admin.wait_for_leaders("kept")
        with Producer(cluster.bootstrap_servers, {**client, "acks": "all"}) as producer:
            for partition in range(3):
                assert producer.send("kept", b"x", partition=partition).result(60).offset == 0
        for listener in ("SASL_PLAINTEXT", "CONTROLLER"):
            words = f"as User:kafka again by GSSAPI on {listener}"
            wait_until(lambda words=words: reported_by_any(cluster, words), within=60, what=words)  # type: ignore[misc]
        cluster.wait_in_sync("kept", 0)


def reported_by_any(cluster: Cluster, words: str) -> bool:
    return any(words in cluster.log(node) for node in cluster.brokers)


@pytest.mark.java
def test_kafkas_tools_log_in_by_a_ticket(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.kafka_tools()
    config = tmp_path / "client.properties"
    keys = server.realm.directory / "alice.keytab"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f'sasl.jaas.config={MODULE} keyTab="{keys}" principal="alice@{REALM}";\n'
    )
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.krb5.conf={server.realm.config}")
    done = run_java_tool("topics", "--bootstrap-server", server.address, "--command-config", str(config), "--list")
    assert done.returncode == 0, done.stderr
