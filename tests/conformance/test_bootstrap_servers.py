"""`bootstrap.servers`: tables of what it may say, held against this client and against Kafka's Java client."""

from __future__ import annotations

import re
from ipaddress import ip_address

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.errors import SettingError
from pybroker.client.network.servers import parse_servers
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker
from tests.support import java_oracle

Server = tuple[str, int]

# Hosts that every machine knows: Java's client looks them up before it says yes.
TAKEN: list[tuple[str, list[Server]]] = [
    ("localhost:9092", [("localhost", 9092)]),
    (":9092", [("localhost", 9092)]),
    ("localhost:1, 127.0.0.1:65535 ", [("localhost", 1), ("127.0.0.1", 65535)]),
    ("localhost:1,localhost:2,localhost:1", [("localhost", 1), ("localhost", 2)]),
    ("localhost:09092", [("localhost", 9092)]),
    (f"localhost:{'0' * 5000}1", [("localhost", 1)]),
    ("[::1]:9092", [("::1", 9092)]),
    ("::1:9092", [("::1", 9092)]),
    ("0:0:0:0:0:0:0:1:9092", [("::1", 9092)]),
    ("[::1%1]:9092", [("::1%1", 9092)]),
    ("[127.0.0.1]:9092", [("127.0.0.1", 9092)]),
    ("[]:9092", [("localhost", 9092)]),
    ("[::1:9092", [("::1", 9092)]),
    ("PLAINTEXT://localhost:9092", [("localhost", 9092)]),
    ("PLAINTEXT://:9092", [("localhost", 9092)]),
]
REFUSED = [
    *("localhost", "localhost:", "localhost:x", "localhost:1x", "localhost:-1", "localhost:+1", "localhost: 1"),
    *("localhost:65536", "localhost:70000", "localhost:4294967297", f"localhost:{'9' * 5000}"),
    *("localhost:1,,localhost:2", ",localhost:1", "localhost:1,", ",", " , ", "", " "),
    *("::1", "[::1]", "[::1]:", "[:]:1", "localhost:1:2", "1:2:3:4:5:6:7:8:9:1"),
    *(
        "local host:1",
        "localhost/:1",
        "//localhost:1",
        "localhost:1/",
        "me@localhost:1",
        "b\u00fccher:1",
    ),
]
# What Java's client takes, and why it is refused here.
REFUSED_HERE_ONLY = [("localhost:0", "no server listens there: Java's client tries for ever")]


@pytest.mark.parametrize(("text", "servers"), TAKEN, ids=lambda value: str(value)[:40])
def test_a_list_names_servers(text: str, servers: list[Server]) -> None:
    found = [server.rpartition(":") for server in parse_servers(text)]
    assert [(plain(host.strip("[]")), int(port)) for host, _, port in found] == servers


@pytest.mark.parametrize("text", [*REFUSED, *(text for text, _ in REFUSED_HERE_ONLY)], ids=lambda value: value[:40])
def test_what_names_no_server_is_refused_with_what_would(text: str) -> None:
    with pytest.raises(SettingError, match=rf"^bootstrap\.servers={re.escape(text)}: .*expected host:port"):
        parse_servers(text)


@pytest.mark.parametrize(
    ("text", "instead"), [("h:1,nonsense", "nonsense"), ("h:1,,g:1", "an empty entry"), ("h:1,h:0", "h:0")]
)
def test_the_server_among_others_that_is_none_is_named(text: str, instead: str) -> None:
    message = f"bootstrap.servers={text}: expected host:port, with a port from 1 to 65535, instead of {instead}"
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        parse_servers(text)


@pytest.mark.parametrize("form", [":{}", "PLAINTEXT://:{}", "[127.0.0.1]:{}"])
def test_all_clients_find_the_server_in_every_form(form: str) -> None:
    with Broker() as broker:
        servers = form.format(broker.bootstrap_servers.rpartition(":")[2])
        with Producer(servers) as producer:
            assert producer.send("t", b"v").result(60).offset == 0
        with Admin(servers) as admin:
            assert admin.list_topics() == ["t"]


@pytest.mark.java
def test_the_tables_are_those_of_kafkas_client() -> None:
    with java_oracle.running("AddressOracle") as oracle:
        for text, servers in TAKEN:
            response = oracle.query("parse", servers=text)
            assert [(plain(host), port) for host, port in response.get("servers", [response])] == servers, text[:40]
        assert [text[:40] for text in REFUSED if "fault" not in oracle.query("parse", servers=text)] == []
        for text, why in REFUSED_HERE_ONLY:
            assert "fault" not in oracle.query("parse", servers=text), why


def plain(host: str) -> str:
    """An address in its shortest form; a name as it is."""
    try:
        return str(ip_address(host))
    except ValueError:
        return host
