"""Brokers with a second listener that authenticates clients by TLS or SASL, alone, with an authorizer or with quotas.

Owns the files of certificates, users, access control entries and quotas, identical for pybroker and Apache Kafka. The
benchmark's own administration uses the plain listener. Loads use the secured one (`load_servers`, `load_properties`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from pybench.peers.free_ports import free_ports
from pybench.peers.kafka import Kafka
from pybench.peers.pybroker import Pybroker
from pybroker.client import Admin
from pybroker.client.administration.acl_admin import Acl, AclPattern
from pybroker.client.administration.user_admin import ScramPassword
from pybroker.client.errors import BrokerError
from pybroker.testing.certificates import Authority

TLS = "tls"
SASL = "sasl"
ACLS = "acls"
QUOTAS = "quotas"
KINDS = (TLS, SASL, ACLS, QUOTAS)
SUITE = "TLS_AES_256_GCM_SHA384"
USER, PASSWORD = "load", "load-secret"
ENTRIES = 1000
"""Number of access control entries. Two of them apply to the load."""
OTHERS = 100
"""Number of users, and of client ids, with quotas. None of them applies to the load."""
_LIMITS = {"producer_byte_rate": 1e6, "consumer_byte_rate": 1e6, "request_percentage": 50.0}
_SCRAM, _PLAIN = "SCRAM-SHA-512", "PLAIN"
_LITERAL, _PREFIXED = 3, 4
_TOPIC, _GROUP = 2, 3
_ALL, _READ = 2, 3
_ALLOW = 3


class Secured:
    """A node of either broker, with a secured listener in addition to the plain one."""

    def __init__(self, kind: str, *, is_kafka: bool, directory: Path, overrides: Mapping[str, str]) -> None:
        self.kind, self._directory = kind, directory
        (port,) = free_ports(1)
        protocol = "SSL" if kind == TLS else "SASL_PLAINTEXT"
        self.load_servers = f"127.0.0.1:{port}"
        beside = f"{protocol}://{self.load_servers}"
        self.load_properties = self._client_properties()
        settings = {**overrides, **self._server_properties(is_kafka=is_kafka)}
        if is_kafka:
            self._node: Kafka | Pybroker = Kafka(directory, settings, beside=beside)
        else:
            self._node = Pybroker(directory, settings, beside=beside)

    @property
    def bootstrap_servers(self) -> str:
        """The listener without security."""
        return self._node.bootstrap_servers

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the node."""
        return self._node.pids

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """The log directories of the node."""
        return self._node.log_directories

    def start(self) -> Self:
        """Write the certificates, start the node, and create the user and the entries or quotas."""
        self._directory.mkdir(parents=True, exist_ok=True)
        if self.kind == TLS and not self._authority.exists():
            authority = Authority("benchmark")
            broker = authority.issue("broker")
            self._authority.write_text(authority.pem)
            self._key_store.write_text(broker.key + broker.certificate)
        self._node.start()
        if self.kind != TLS:
            with Admin(self.bootstrap_servers) as admin:
                admin.alter_scram_user(USER, give=ScramPassword(_SCRAM, PASSWORD))
                if self.kind == ACLS:
                    admin.create_acls(_entries())
                if self.kind == QUOTAS:
                    for number in range(OTHERS):
                        admin.alter_client_quotas({"user": f"user-{number}"}, _LIMITS)
                        admin.alter_client_quotas({"client-id": f"client-{number}"}, _LIMITS)
        return self

    def stop(self) -> None:
        """Stop the node."""
        self._node.stop()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            with suppress(BrokerError):
                self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _authority(self) -> Path:
        return self._directory / "authority.pem"

    @property
    def _key_store(self) -> Path:
        return self._directory / "broker.pem"

    def _server_properties(self, *, is_kafka: bool) -> dict[str, str]:
        if self.kind == TLS:
            store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._key_store)}
            return store | {"ssl.enabled.protocols": "TLSv1.3", "ssl.cipher.suites": SUITE}
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        settings = {
            "sasl.enabled.mechanisms": f"{_SCRAM},{_PLAIN}",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{module} required user_{USER}="{PASSWORD}";',
        }
        if is_kafka:
            module = "org.apache.kafka.common.security.scram.ScramLoginModule"
            settings["listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config"] = f"{module} required;"
        if self.kind == ACLS:
            settings["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            settings["super.users"] = "User:ANONYMOUS"
        return settings

    def _client_properties(self) -> dict[str, str]:
        if self.kind == TLS:
            return {"security.protocol": "ssl", "ssl.ca.location": str(self._authority)}
        # Kafka rejects SCRAM nonces of librdkafka before 2.6.1, the version of Debian 12. Logins are a separate load.
        sasl = {"security.protocol": "sasl_plaintext", "sasl.mechanism": _PLAIN}
        return sasl | {"sasl.username": USER, "sasl.password": PASSWORD}


def _entries() -> list[Acl]:
    """Return entries of other users on other topics, and the two that authorize the load."""
    own = [
        Acl(AclPattern(_TOPIC, "bench-", _PREFIXED), f"User:{USER}", "*", _ALL, _ALLOW),
        Acl(AclPattern(_GROUP, "brokerload", _PREFIXED), f"User:{USER}", "*", _ALL, _ALLOW),
    ]
    others = [
        Acl(AclPattern(_TOPIC, f"topic-{number}", _LITERAL), f"User:user-{number % 100}", "*", _READ, _ALLOW)
        for number in range(ENTRIES - len(own))
    ]
    return own + others
