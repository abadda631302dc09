"""A server with a listener of SASL beside the plain one, and what speaks to it in single requests."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pybench.peers.free_ports import free_ports
from pybroker.security.scram import client_proof, salted_password
from pybroker.security.scram_mechanisms import SCRAM_BY_NAME
from pybroker.testing import Broker
from tests.support import programs
from tests.support.wire import Wire

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
NONE, UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED = 0, 33, 34, 58
PLAIN_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice secret" user_bob="b";'
SCRAM_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def settings(port: int, plain_port: int) -> dict[str, str]:
    """The settings of a listener named SASL that has every mechanism."""
    given = {
        "listeners": f"SASL://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{plain_port}",
        "listener.security.protocol.map": "SASL:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl.plain.sasl.jaas.config": PLAIN_JAAS,
    }
    for mechanism in MECHANISMS[1:]:
        given[f"listener.name.sasl.{mechanism.lower()}.sasl.jaas.config"] = SCRAM_JAAS
    return given


@contextmanager
def sasl_server(is_kafka: bool, more: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """The address of the listener that asks, and of the plain one, of a server of its own."""
    port, plain_port = free_ports(2)
    if not is_kafka:
        with Broker(properties={**settings(port, plain_port), **(more or {})}):
            yield f"127.0.0.1:{port}", f"127.0.0.1:{plain_port}"
        return
    from pybench.peers.kafka import Kafka

    class SaslKafka(Kafka):
        """Apache Kafka with a second listener, beside the port that it is found ready at."""

        def _write_config(self, controller_port: int) -> Path:
            given = {**settings(port, self.port), **(more or {})}
            given["listeners"] += f",CONTROLLER://127.0.0.1:{controller_port}"
            given["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
            given["advertised.listeners"] = f"SASL://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{self.port}"
            self._overrides = given
            return super()._write_config(controller_port)

    programs.kafka_tools()
    with SaslKafka(ready_timeout_s=300) as kafka:
        yield f"127.0.0.1:{port}", kafka.bootstrap_servers


def handshake(wire: Wire, mechanism: str) -> Any:
    """The answer to SaslHandshake."""
    return wire.call("SaslHandshake", 1, mechanism=mechanism)


def token(wire: Wire, data: bytes, version: int = 2) -> Any:
    """The answer to SaslAuthenticate."""
    return wire.call("SaslAuthenticate", version, auth_bytes=data)


def scram_last(mechanism: str, password: str, first: str, server_first: str, **other: str) -> bytes:
    """The client's last message; `other` has what is sent in place of a right part."""
    parts = dict(part.split("=", 1) for part in server_first.split(","))
    salted = salted_password(SCRAM_BY_NAME[mechanism], password, b64decode(parts["s"]), int(parts["i"]))
    without_proof = f"c={other.get('c', 'biws')},r={other.get('r', parts['r'])}"
    message = f"{first.removeprefix('n,,')},{server_first},{without_proof}".encode()
    proof = b64encode(client_proof(SCRAM_BY_NAME[mechanism], salted, message)).decode()
    return f"{without_proof},p={other.get('p', proof)}".encode()
