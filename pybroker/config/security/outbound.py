"""Security of a node's connections to other nodes: the settings of a listener, converted to those of a client.

Owns which key applies: as in Kafka, those of the target listener, so a node uses one key store for both sides. A
mechanism with which this node cannot authenticate is rejected. The result uses the keys of Kafka's clients. Must not
read a file.

Source: Kafka's ChannelBuilders and JaasContext (`JaasContext.Type.SERVER`), KafkaConfig's rules of mechanisms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.config.errors import ConfigError, RefusedError
from pybroker.config.security.kerberos import GSSAPI, SERVICE
from pybroker.config.security.oauth import (
    LOGIN_CLASS,
    LOGIN_HANDLER,
    OAUTHBEARER,
    TOKEN_URL,
    UNSECURED_LOGIN,
    UNSECURED_LOGIN_CLASS,
)
from pybroker.config.security.sasl import JAAS_KEY, PLAIN, SUPPORTED, ListenerTexts, login_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.config.security.jaas import LoginModule
    from pybroker.config.security.sasl import ListenerSasl

BETWEEN_BROKERS = "sasl.mechanism.inter.broker.protocol"
TO_CONTROLLERS = "sasl.mechanism.controller.protocol"
_DEFAULT_MECHANISM = GSSAPI
_PACKAGE = "org.apache.kafka.common.security"
_OF_TOKENS = (
    TOKEN_URL,
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.header.urlencode",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
)
"""The settings of a token's source and renewal."""
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


class OutboundSecurity(msgspec.Struct, frozen=True):
    """A kind of connections to other nodes."""

    listener: str
    """The name of the target listener."""
    protocol: str
    """Its security protocol."""
    mechanism_key: str
    """The key of the SASL mechanism."""


def build_client_properties(way: OutboundSecurity, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the client settings of such connections, from texts by full key. Raises ConfigError."""
    found = {"security.protocol": way.protocol}
    of_listener = ListenerTexts(texts, way.listener)
    if way.protocol.endswith("SSL"):
        for key in _STORES:
            reported = of_listener.get(key)
            if reported is not None and reported[1].strip():
                found[key] = reported[1]
        checks = of_listener.get(_CHECKS_NAMES)
        if checks is not None:  # An empty value disables host name verification.
            found[_CHECKS_NAMES] = checks[1].strip()
    if way.protocol.startswith("SASL_"):
        mechanism = texts.get(way.mechanism_key, _DEFAULT_MECHANISM).strip()
        if mechanism not in SUPPORTED:
            raise ConfigError(way.mechanism_key, mechanism, f"one of {', '.join(SUPPORTED)}")
        found["sasl.mechanism"] = mechanism
        found |= _login(way, of_listener, mechanism, is_default=way.mechanism_key not in texts)
    return found


def check_mechanism(way: OutboundSecurity, texts: Mapping[str, str], offered: Mapping[str, ListenerSasl]) -> None:
    """Check that the target listener, if this node has it, supports the mechanism. Raises ConfigError."""
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


def _login(way: OutboundSecurity, texts: ListenerTexts, mechanism: str, *, is_default: bool) -> dict[str, str]:
    """Return the login of this node: the JAAS text, and further settings of the mechanism. Raises ConfigError."""
    module = login_module(way.listener, texts, mechanism)
    found = {} if module is None else {JAAS_KEY: _text(texts, JAAS_KEY, mechanism)}
    name = f"listener.name.{way.listener.lower()}.{mechanism.lower()}.{JAAS_KEY}"
    if mechanism == OAUTHBEARER:
        return found | _token_source(name, texts, {} if module is None else module.options)
    if mechanism == GSSAPI:
        if module is None and is_default:
            words = f"one of {', '.join(SUPPORTED)}; GSSAPI, the default, needs this node's key in {name}"
            raise ConfigError(way.mechanism_key, mechanism, words)
        return found | _kerberos_service(name, texts, module)
    if module is None or not module.options.get("username") or "password" not in module.options:
        kind = "plain.PlainLoginModule" if mechanism == PLAIN else "scram.ScramLoginModule"
        example = f'{_PACKAGE}.{kind} required username="broker" password="secret";'
        words = f"the user that this node authenticates as, as in {example}"
        raise ConfigError(name, "" if module is None else "[hidden]", words)
    return found


def _token_source(name: str, texts: ListenerTexts, options: Mapping[str, str]) -> dict[str, str]:
    """Return the source of this node's tokens: a server, a file, or unsigned tokens that it creates itself."""
    found = {key: text for key in _OF_TOKENS if (text := _text(texts, key, OAUTHBEARER))}
    makes_own = any(option.startswith(UNSECURED_LOGIN) for option in options)
    if (TOKEN_URL in found) == makes_own:
        example = f'{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required {UNSECURED_LOGIN}StringClaim_sub="broker";'
        words = (
            f"the source of this node's tokens: an address as {TOKEN_URL}; or, for listeners that accept "
            f"unsigned tokens, {example}"
        )
        raise ConfigError(name, "[hidden]" if options else "", f"only one of the two: {words}" if makes_own else words)
    handler, right = _text(texts, LOGIN_HANDLER, OAUTHBEARER), UNSECURED_LOGIN_CLASS if makes_own else LOGIN_CLASS
    if handler not in ("", right):
        raise ConfigError(LOGIN_HANDLER, handler, f"{right}, or nothing")
    return found


def _kerberos_service(name: str, texts: ListenerTexts, module: LoginModule | None) -> dict[str, str]:
    """Return the Kerberos service for which this node gets tickets."""
    if module is None:
        example = 'required useKeyTab=true storeKey=true keyTab="/etc/kafka.keytab" principal="kafka/host@REALM";'
        raise ConfigError(name, "", f"this node's key, as in com.sun.security.auth.module.Krb5LoginModule {example}")
    service = _text(texts, SERVICE, GSSAPI)
    if not service and not module.options.get("serviceName"):
        raise ConfigError(SERVICE, "", "the first part of the nodes' principals, as in their tickets: kafka")
    return {SERVICE: service} if service else {}


def _text(texts: ListenerTexts, key: str, mechanism: str) -> str:
    """Return the effective text of a key; empty without one."""
    found = texts.get(key, mechanism)
    return "" if found is None else found[1].strip()
