"""From properties to a client's settings: validation of keys and values.

Owns the order of validation (key, value, rules between values) and its messages. Must not know particular keys
except `bootstrap.servers`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from pybroker.client.errors import SettingError
from pybroker.client.network.servers import parse_servers
from pybroker.client.settings.librdkafka_names import KAFKAS_NAMES
from pybroker.config.errors import ConfigError
from pybroker.config.key import string
from pybroker.config.settings import Settings, suggestion

_log = logging.getLogger("pybroker.client")

_SERVERS = "bootstrap.servers"
TOKEN_PROVIDER = "sasl.oauthbearer.token.provider"
"""The key of every client whose value is a function."""
_SECRET = ("passw", "secret", "jaas", "passphrase", "keystore.key", "key.pem", "token")


class ClientSettings(Settings):
    """The values of one client's settings, by attribute: `linger.ms` is `linger_ms`. Immutable."""

    client: ClassVar[str]
    """The kind of client, for messages: `a producer`."""
    kinds: ClassVar[list[type[ClientSettings]]] = []
    """Every class of client settings."""
    objects: ClassVar[frozenset[str]] = frozenset()
    """Keys whose values may be Python objects. The code that uses them validates them."""
    unused: ClassVar[frozenset[str]] = frozenset()
    """Keys that are declared for several kinds of clients, and have no effect on this kind."""

    named: frozenset[str]
    """The keys that were set: those of `given`, and those whose values are objects."""

    bootstrap_servers = string("", "Initial brokers as `host:port`, comma-separated or as a list; at least one.")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "client" in vars(cls):
            cls.kinds.append(cls)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Parse Kafka's keys. Values are texts, numbers, booleans, or lists where Kafka accepts lists. None: not set.

        Raises SettingError for a key that is unknown to all clients or not supported by this one, for a value of
        another type or out of range, and for values that exclude each other.
        """
        texts = {}
        for key, value in properties.items():
            if value is None:
                continue
            cls._check_key(key, value)
            if key in cls.keys and key not in cls.objects and not (key == TOKEN_PROVIDER and callable(value)):
                texts[key] = _text_of(value)
        if not texts.get(_SERVERS):
            raise SettingError(f"{_SERVERS} is not set: specify at least one host:port")
        texts[_SERVERS] = ",".join(parse_servers(texts[_SERVERS]))
        try:
            made = cls(texts)
        except ConfigError as error:
            raise SettingError(f"{error.name}={error.value}: must be {error.expected}") from None
        made.__dict__["named"] = frozenset(key for key, value in properties.items() if value is not None)
        provider = properties.get(TOKEN_PROVIDER)
        made.__dict__["token_provider"] = provider if callable(provider) else None
        made._complete()
        made._check_security()
        return made

    @classmethod
    def check(cls, properties: Mapping[str, Any]) -> None:
        """Raise SettingError for properties that a client would reject, whatever its servers are."""
        cls.from_properties({_SERVERS: "any:1", **properties})

    @classmethod
    def of_client(
        cls,
        bootstrap_servers: str | Iterable[str],
        properties: Mapping[str, Any] | None,
        defaults: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the settings of a new client. Keys without effect are logged at WARN. Raises SettingError."""
        if isinstance(bootstrap_servers, Mapping):
            raise SettingError(f"{_SERVERS} are the first argument, settings the second: ('localhost:9092', {{...}})")
        given = dict(properties or {})
        servers = _text_of(bootstrap_servers)
        other = given.get(_SERVERS)
        if other is not None and parse_servers(_text_of(other)) != parse_servers(servers):
            raise SettingError(f"{_SERVERS}={_text_of(other)}: the servers argument is {servers}; set only one")
        settings = cls.from_properties({**(defaults or {}), **given, _SERVERS: servers})
        for key in cls.without_effect(given):
            _log.warning("%s=%s has no effect on %s", key, shown(key, given[key]), cls.client)
        return settings

    @classmethod
    def without_effect(cls, properties: Mapping[str, Any]) -> list[str]:
        """Return the keys of `properties` that have no effect, sorted: other clients' keys, and unused ones.

        A key with its default value, or an unknown key, is included only when it is not declared for this client.
        """
        return sorted(key for key, value in properties.items() if value is not None and cls._is_idle(key, value))

    @classmethod
    def acting(cls, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of another client's `properties` that have an effect here. That client logs unknown ones."""
        idle = cls.without_effect(properties)
        return {key: value for key, value in properties.items() if key not in idle}

    @classmethod
    def _is_idle(cls, key: str, value: Any) -> bool:
        declared = cls.keys.get(key)
        if declared is None or key in cls.unused:
            return True
        return not declared.acts and _text_of(value) != declared.text_of(declared.default)

    @classmethod
    def _check_key(cls, key: object, value: Any) -> None:
        """Raise SettingError for a key that is unknown to all clients, or not supported by this one."""
        if not isinstance(key, str):
            raise SettingError(f"{key!r} is not a setting: expected a string such as {_SERVERS}")
        if any(key in kind.keys for kind in cls.kinds):
            return
        if key in KAFKAS_NAMES:
            name = KAFKAS_NAMES[key]
            what = "this client has no equivalent" if name is None else f"Kafka's name is {name}"
            raise SettingError(f"{key}={shown(key, value)}: a setting of librdkafka; {what}")
        near = suggestion(key.replace("_", "."), cls.keys) or suggestion(key, _all_keys())
        hint = "" if near is None else f"; is {near} meant?"
        raise SettingError(f"{key}={shown(key, value)}: {cls.client} has no such setting{hint}")

    def _complete(self) -> None:
        """Check the rules between values, and compute values that depend on other values. Raises SettingError."""

    def _check_security(self) -> None:
        """Check the rules between values of `ssl.*` and `sasl.*`. Raises SettingError."""


def shown(key: str, value: object) -> str:
    """Return a value for a message; the value of a key that may contain a secret is hidden."""
    return "[hidden]" if any(word in key.lower() for word in _SECRET) else str(value)


def _all_keys() -> dict[str, object]:
    return {name: key for kind in ClientSettings.kinds for name, key in kind.keys.items()}


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text_of, value))
    return str(value).strip()
