"""How properties become a client's settings: which keys there are, what is wrong with a key or a value.

Owns the order of judgement (key, value, rules between values) and its words. Must not know any particular key but
`bootstrap.servers`.
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
    """Every class of settings of a client."""
    objects: ClassVar[frozenset[str]] = frozenset()
    """Keys whose values may be Python objects; the code that uses them checks them."""
    unused: ClassVar[frozenset[str]] = frozenset()
    """Keys that are declared for several kinds of client, and that this kind has no use for."""

    named: frozenset[str]
    """The keys that were given, `given` and those whose values are objects."""

    bootstrap_servers = string("", "`host:port` of brokers to begin with, comma-separated or a list, at least one.")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "client" in vars(cls):
            cls.kinds.append(cls)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Read Kafka's keys; values are text, numbers, booleans, or lists where Kafka takes lists. None: not given.

        Raises SettingError for a key that no client knows, or that this one cannot honour, for a value of another type
        or out of range, and for values that do not go together.
        """
        texts = {}
        for key, value in properties.items():
            if value is None:
                continue
            cls._check_key(key, value)
            if key in cls.keys and key not in cls.objects and not (key == TOKEN_PROVIDER and callable(value)):
                texts[key] = _text_of(value)
        if not texts.get(_SERVERS):
            raise SettingError(f"{_SERVERS} is not set: name at least one host:port")
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
        """Refuse what a client with these properties would refuse, whatever its servers are. Raises SettingError."""
        cls.from_properties({_SERVERS: "any:1", **properties})

    @classmethod
    def of_client(
        cls,
        bootstrap_servers: str | Iterable[str],
        properties: Mapping[str, Any] | None,
        defaults: Mapping[str, Any] | None = None,
    ) -> Self:
        """The settings of a client that is being made; keys without effect are logged at WARN. Raises SettingError."""
        if isinstance(bootstrap_servers, Mapping):
            raise SettingError(f"{_SERVERS} come first, the settings second: ('localhost:9092', {{...}})")
        given = dict(properties or {})
        servers = _text_of(bootstrap_servers)
        other = given.get(_SERVERS)
        if other is not None and parse_servers(_text_of(other)) != parse_servers(servers):
            raise SettingError(f"{_SERVERS}={_text_of(other)}: the client is given other servers, {servers}, beside it")
        settings = cls.from_properties({**(defaults or {}), **given, _SERVERS: servers})
        for key in cls.without_effect(given):
            _log.warning("%s=%s has no effect on %s", key, shown(key, given[key]), cls.client)
        return settings

    @classmethod
    def without_effect(cls, properties: Mapping[str, Any]) -> list[str]:
        """The keys of `properties` that change nothing here, sorted: other clients' keys, and those that nothing reads.

        A key that holds its default, or is unknown, counts among them only when it is not this client's.
        """
        return sorted(key for key, value in properties.items() if value is not None and cls._is_idle(key, value))

    @classmethod
    def acting(cls, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of another client's `properties` that have an effect here; that client warns of unknown ones."""
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
        """Refuse a key that nobody knows, or that cannot be honoured. Raises SettingError."""
        if not isinstance(key, str):
            raise SettingError(f"{key!r} is no setting: keys are texts, like {_SERVERS}")
        if any(key in kind.keys for kind in cls.kinds):
            return
        if key in KAFKAS_NAMES:
            name = KAFKAS_NAMES[key]
            what = "this client has nothing of the kind" if name is None else f"Kafka's name is {name}"
            raise SettingError(f"{key}={shown(key, value)}: a setting of librdkafka; {what}")
        near = suggestion(key.replace("_", "."), cls.keys) or suggestion(key, _all_keys())
        hint = "" if near is None else f"; is {near} meant?"
        raise SettingError(f"{key}={shown(key, value)}: {cls.client} has no such setting{hint}")

    def _complete(self) -> None:
        """Hold the values against each other, and derive what depends on several. Raises SettingError."""

    def _check_security(self) -> None:
        """Hold the values of `ssl.*` and `sasl.*` against each other. Raises SettingError."""


def shown(key: str, value: object) -> str:
    """Return a value for a message: of a key that may hold a secret, none of it."""
    return "[hidden]" if any(word in key.lower() for word in _SECRET) else str(value)


def _all_keys() -> dict[str, object]:
    return {name: key for kind in ClientSettings.kinds for name, key in kind.keys.items()}


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text_of, value))
    return str(value).strip()
