"""How a node's connections to other nodes are secured: the settings of a listener, seen from the side that connects.

Owns which key speaks: those of the listener that is connected to, as Kafka has it, so that one key store is what a node
shows to both sides. The result are the keys of Kafka's clients. Must not read a file.

Source: Kafka's ChannelBuilders and JaasContext (`JaasContext.Type.SERVER`), KafkaConfig's rules of mechanisms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.config.errors import ConfigError, RefusedError
from pybroker.config.jaas import JaasError, parse_jaas
from pybroker.config.sasl import JAAS_KEY, PLAIN, SCRAM, ListenerTexts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.sasl import ListenerSasl

BETWEEN_BROKERS = "sasl.mechanism.inter.broker.protocol"
TO_CONTROLLERS = "sasl.mechanism.controller.protocol"
_MECHANISMS = (PLAIN, *SCRAM)
_DEFAULT_MECHANISM = "GSSAPI"
_STORES = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
)
_CHECKS_NAMES = "ssl.endpoint.identification.algorithm"


class Way(msgspec.Struct, frozen=True):
    """Where connections go."""

    listener: str
    """The name of the listener that is connected to."""
    protocol: str
    """Its security protocol."""
    mechanism_key: str
    """The key that names the mechanism of SASL."""


def build_client_properties(way: Way, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a client that connects that way, from texts by full key; raises ConfigError."""
    found = {"security.protocol": way.protocol}
    of_listener = ListenerTexts(texts, way.listener)
    if way.protocol.endswith("SSL"):
        for key in _STORES:
            said = of_listener.get(key)
            if said is not None and said[1].strip():
                found[key] = said[1]
        checks = of_listener.get(_CHECKS_NAMES)
        if checks is not None:  # Empty is a word: names are not compared.
            found[_CHECKS_NAMES] = checks[1].strip()
    if way.protocol.startswith("SASL_"):
        mechanism = texts.get(way.mechanism_key, _DEFAULT_MECHANISM).strip()
        if mechanism not in _MECHANISMS:
            raise ConfigError(way.mechanism_key, mechanism, f"one of {', '.join(_MECHANISMS)} between nodes")
        found["sasl.mechanism"] = mechanism
        found[JAAS_KEY] = _credentials(way, of_listener, mechanism)
    return found


def check_mechanism(way: Way, texts: Mapping[str, str], offered: Mapping[str, ListenerSasl]) -> None:
    """Check that the listener, where it is this node's, takes the mechanism of its nodes; raises ConfigError."""
    listener = offered.get(way.listener)
    if listener is None or not way.protocol.startswith("SASL_"):
        return
    mechanism = texts.get(way.mechanism_key, _DEFAULT_MECHANISM).strip()
    if mechanism not in listener.mechanisms:
        what = "inter-broker" if way.mechanism_key == BETWEEN_BROKERS else "controller"
        sentence = (
            f"{way.mechanism_key} ({mechanism}) must be included in sasl.enabled.mechanisms "
            f"({','.join(listener.mechanisms)}) when SASL is used for {what} communication"
        )
        raise RefusedError(way.mechanism_key, mechanism, sentence)


def _credentials(way: Way, texts: ListenerTexts, mechanism: str) -> str:
    """Return the JAAS text with the user that this node is; raises ConfigError."""
    name = f"listener.name.{way.listener.lower()}.{mechanism.lower()}.{JAAS_KEY}"
    said = texts.get(JAAS_KEY, mechanism)
    module = "plain.PlainLoginModule" if mechanism == PLAIN else "scram.ScramLoginModule"
    example = f'org.apache.kafka.common.security.{module} required username="broker" password="secret";'
    expected = f"the user that this node is for others, as in {example}"
    if said is None or not said[1].strip():
        raise ConfigError(name, "", expected)
    try:
        modules = parse_jaas(said[1])
    except JaasError as error:
        raise ConfigError(name, "[hidden]", f"a JAAS configuration: {error}") from None
    if len(modules) != 1 or not modules[0].options.get("username") or "password" not in modules[0].options:
        raise ConfigError(name, "[hidden]", expected)
    return said[1]
