"""Apache Kafka with a listener for each of the four security protocols, and users created at format time."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from pybench.peers.free_ports import free_ports
from pybench.peers.java import run_java_tool
from pybench.peers.kafka import Kafka
from pybroker.testing.certificates import Authority

USERS = {"alice": "alice-secret", "comma,equals=": "other"}
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def unsecured_token(subject: str, expires_s: float) -> str:
    """Return an unsigned JWT (`alg: none`), which Kafka accepts with its default settings."""
    parts = ({"alg": "none"}, {"sub": subject, "iat": expires_s - 600, "exp": expires_s})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


class SecuredKafka(Kafka):
    """A running Apache Kafka. `at(protocol)` returns the address of a listener."""

    def __init__(self, authority: Authority, overrides: Mapping[str, str] | None = None) -> None:
        super().__init__(ready_timeout_s=300)
        self._authority = authority
        self._more = dict(overrides or {})
        self._ports: dict[str, int] = {}

    def at(self, protocol: str) -> str:
        """Return `127.0.0.1:port` of a listener."""
        return f"127.0.0.1:{self._ports[protocol]}"

    def _write_config(self, controller_port: int) -> Path:
        ports = [self.port, *free_ports(3)]
        self._ports = dict(zip(PROTOCOLS, ports, strict=True))
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self._ports.items())
        server = self._authority.issue("broker")
        store, trusted = self.directory / "server.pem", self.directory / "trusted.pem"
        store.write_text(server.key + server.certificate)
        trusted.write_text(self._authority.pem)
        plain = " ".join(f'user_{name}="{password}"' for name, password in USERS.items() if name.isalpha())
        own = 'unsecuredLoginStringClaim_sub="broker"'
        self._overrides = {
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,"
            + ",".join(f"{name}:{name}" for name in PROTOCOLS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
            "ssl.client.auth": "requested",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "group.initial.rebalance.delay.ms": "0",
            **self._more,
        }
        for name in ("sasl_plaintext", "sasl_ssl"):
            prefix = f"listener.name.{name}"
            self._overrides |= {
                f"{prefix}.plain.sasl.jaas.config": f"{_PLAIN} required {plain};",
                f"{prefix}.scram-sha-256.sasl.jaas.config": f"{_SCRAM} required;",
                f"{prefix}.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
                f"{prefix}.oauthbearer.sasl.jaas.config": f"{_OAUTH} required {own};",
            }
        return super()._write_config(controller_port)

    def _format(self, config: Path) -> None:
        words = ["format", "-t", "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]]
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            for name, password in USERS.items():
                if name.isalpha():
                    words += ["--add-scram", f"{mechanism}=[name={name},password={password}]"]
        done = run_java_tool("storage", *words, "-c", str(config))
        assert done.returncode == 0, done.stderr or done.stdout
