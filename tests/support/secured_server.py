"""A server with a listener for each of the four security protocols: pybroker, or Apache Kafka as the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pybench.peers.free_ports import free_ports
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.user_admin import ScramPassword
from pybroker.testing import Broker
from tests.support import programs
from tests.support.certificates import Authority, listener_settings
from tests.support.conditions import wait_until

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = "alice-secret"
_MODULES = "org.apache.kafka.common.security"

At = Callable[[str], str]
"""Maps a security protocol to the address of its listener."""


@contextmanager
def secured_server(
    authority: Authority, overrides: Mapping[str, str] | None = None, *, is_kafka: bool = False
) -> Iterator[At]:
    """Yield a server with a certificate of `authority`, where alice can authenticate with every mechanism.

    Client certificates are requested, but not required unless `overrides` demand it.
    """
    ports = free_ports(len(PROTOCOLS))
    properties = {**_settings(authority, ports), **(overrides or {})}

    def at(protocol: str) -> str:
        return f"127.0.0.1:{ports[PROTOCOLS.index(protocol)]}"

    with _kafka(ports, properties) if is_kafka else Broker(properties=properties):
        with Admin(at("PLAINTEXT")) as admin:
            for mechanism in MECHANISMS[1:]:
                admin.alter_scram_user("alice", give=ScramPassword(mechanism, PASSWORD, 4096))
            known = {"alice": dict.fromkeys(MECHANISMS[1:], 4096)}
            wait_until(lambda: admin.describe_scram_users() == known, within=60, what="alice is known")
        yield at


def _settings(authority: Authority, ports: list[int]) -> dict[str, str]:
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(PROTOCOLS, ports, strict=True))
    settings = {
        "listeners": listeners,
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "group.initial.rebalance.delay.ms": "0",
        **listener_settings(authority.sign("broker"), authority, "requested"),
    }
    for name in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{name}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = (
            f'{_MODULES}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
        )
        for mechanism in MECHANISMS[1:]:
            module = f"{_MODULES}.scram.ScramLoginModule required;"
            settings[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = module
    return settings


@contextmanager
def _kafka(ports: list[int], properties: Mapping[str, str]) -> Iterator[None]:
    from pathlib import Path

    from pybench.peers.kafka import Kafka

    class Secured(Kafka):
        """Apache Kafka with these listeners. Its readiness is checked on the first of them."""

        def _write_config(self, controller_port: int) -> Path:
            listeners = properties["listeners"].replace(f":{ports[0]},", f":{self.port},", 1)
            protocols = ",".join(f"{name}:{name}" for name in PROTOCOLS)
            self._overrides = {
                **{key: value.replace("\n", "\\n") for key, value in properties.items()},
                "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller_port}",
                "advertised.listeners": listeners,
                "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
            }
            ports[0] = self.port
            return super()._write_config(controller_port)

    programs.kafka_tools()
    with Secured(ready_timeout_s=300):
        yield
