"""Security of a test broker's listener and of its clients: generated certificates and users.

Owns the settings of both sides. TLS needs the package `cryptography` of the extra `testing`. Must not know how a
broker starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.config.extras import install_command
from pybroker.controller.cluster.events import ScramUpsertion
from pybroker.security.scram import salted_password
from pybroker.security.scram_mechanisms import LEAST_ITERATIONS, SCRAM_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.testing.certificates import Authority, Certificate

PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", *SCRAM_BY_NAME)
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
"""The users, unless a test gives others."""
_PACKAGE = "org.apache.kafka.common.security"


class Security:
    """The security protocol of a listener, and its users."""

    def __init__(self, protocol: str, users: Mapping[str, str] | None = None) -> None:
        """`users` are passwords by name. Raises ValueError for an unsupported protocol or invalid users."""
        if protocol not in PROTOCOLS:
            raise ValueError(f"security={protocol!r}: expected one of {', '.join(PROTOCOLS)}")
        if protocol == "SSL" and users is not None:
            raise ValueError("security='SSL' has no passwords: client_settings(name) makes a certificate of any name")
        self.protocol = protocol
        self.users = dict(USERS if users is None else users)
        if not all(name and password for name, password in self.users.items()):
            raise ValueError("users: expected a password for each, as in {'alice': 'secret'}")
        self._authority: Authority | None = None
        self._clients: dict[str, Certificate] = {}
        if self.is_encrypted:
            try:
                from pybroker.testing.certificates import Authority
            except ImportError as error:
                raise ValueError(f"security={protocol!r} needs {error.name}: {install_command('testing')}") from None
            self._authority = Authority()

    @property
    def is_encrypted(self) -> bool:
        """Whether the protocol uses TLS."""
        return self.protocol.endswith("SSL")

    @property
    def needs_password(self) -> bool:
        """Whether the protocol uses SASL."""
        return self.protocol.startswith("SASL")

    @property
    def trusted(self) -> str:
        """Return the certificate that clients trust, as PEM; empty without TLS."""
        return "" if self._authority is None else self._authority.pem

    def broker_properties(self) -> dict[str, str]:
        """Return the broker's settings, by Kafka's names."""
        given = {
            "listeners": f"{self.protocol}://127.0.0.1:0",
            "security.inter.broker.protocol": self.protocol,
        }
        if self._authority is not None:
            own = self._authority.issue("broker", days=90)  # no expiry warning
            given |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": own.certificate,
                "ssl.keystore.key": own.key,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": self._authority.pem,
            }
            if not self.needs_password:
                given["ssl.client.auth"] = "requested"
        if self.needs_password:
            users = " ".join(f'"user_{name}"="{_quoted(password)}"' for name, password in self.users.items())
            given["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            name, password = next(iter(self.users.items()))
            own_login = f'username="{_quoted(name)}" password="{_quoted(password)}"'
            given["plain.sasl.jaas.config"] = f"{_PACKAGE}.plain.PlainLoginModule required {own_login} {users};"
            given["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
        return given

    def node_properties(self) -> dict[str, str]:
        """Return the settings of each node of a cluster, whose controller listeners are secured as well."""
        given = self.broker_properties()
        del given["listeners"]
        if self.needs_password:
            given["sasl.mechanism.controller.protocol"] = "PLAIN"
        return given

    def scram_users(self) -> list[list[ScramUpsertion]]:
        """Return AlterUserScramCredentials' users of each mechanism; computes thousands of hashes each."""
        if not self.needs_password:
            return []
        return [
            [
                ScramUpsertion(
                    name,
                    mechanism.number,
                    LEAST_ITERATIONS,
                    _SALT,
                    salted_password(mechanism, password, _SALT, LEAST_ITERATIONS),
                )
                for name, password in self.users.items()
            ]
            for mechanism in SCRAM_BY_NAME.values()
        ]

    def client_settings(self, user: str | None, mechanism: str) -> dict[str, str]:
        """Return the settings of a librdkafka client. Raises ValueError for an unknown user."""
        given = {"security.protocol": self.protocol}
        if self._authority is not None:
            given["ssl.ca.pem"] = self._authority.pem
        if self.needs_password:
            name, password = self._login(user, mechanism)
            given |= {"sasl.mechanism": mechanism, "sasl.username": name, "sasl.password": password}
        elif user is not None:
            own = self._client(user)
            given |= {"ssl.certificate.pem": own.certificate, "ssl.key.pem": own.key}
        return given

    def client_properties(self, user: str | None, mechanism: str) -> dict[str, str]:
        """Return the settings of a client with Kafka's names. Raises ValueError for an unknown user."""
        given = {"security.protocol": self.protocol}
        if self._authority is not None:
            given |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self._authority.pem}
        if self.needs_password:
            name, password = self._login(user, mechanism)
            module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            words = f'username="{_quoted(name)}" password="{_quoted(password)}"'
            given |= {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{_PACKAGE}.{module} required {words};"}
        elif user is not None:
            own = self._client(user)
            given |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": own.certificate,
                "ssl.keystore.key": own.key,
            }
        return given

    def _login(self, user: str | None, mechanism: str) -> tuple[str, str]:
        if mechanism not in MECHANISMS:
            raise ValueError(f"mechanism {mechanism!r}: expected one of {', '.join(MECHANISMS)}")
        name = next(iter(self.users)) if user is None else user
        if name not in self.users:
            raise ValueError(f"user {name!r}: expected one of {', '.join(self.users)}")
        return name, self.users[name]

    def _client(self, name: str) -> Certificate:
        """Return the certificate of a client: the same at each call."""
        if self._authority is None:
            raise ValueError("certificates need TLS: set security to SSL or SASL_SSL")
        if name not in self._clients:
            self._clients[name] = self._authority.issue(name, ())
        return self._clients[name]


def build_security(protocol: str | None, users: Mapping[str, str] | None) -> Security | None:
    """Return the security of a protocol, None for plaintext. Raises ValueError for unsupported values."""
    if protocol is None and users is not None:
        raise ValueError("users need security SASL_PLAINTEXT or SASL_SSL")
    return None if protocol is None else Security(protocol, users)


_SALT = b"a test broker's own"


def _quoted(text: str) -> str:
    """Escape a text for use between quotes in a JAAS config."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
