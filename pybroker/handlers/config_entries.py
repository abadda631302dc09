"""Configuration entries of DescribeConfigs and CreateTopics: value, source, and synonyms.

Owns the precedence of sources (topic or group, broker, all brokers, broker file, default; KIP-226). Must not build
messages: the field names of the two APIs differ.
"""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pybroker.config.broker import BrokerConfig
from pybroker.config.dynamic import key_of
from pybroker.config.group import GroupConfig, group_synonym
from pybroker.config.key import Kind
from pybroker.config.topic import TopicConfig, broker_chain, broker_synonyms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pybroker.config.client_metrics import ClientMetricsConfig
    from pybroker.config.key import Key

SOURCE_TOPIC = 1
SOURCE_DYNAMIC_BROKER = 2
SOURCE_DYNAMIC_DEFAULT = 3
SOURCE_STATIC_BROKER = 4
SOURCE_DEFAULT = 5
SOURCE_LOGGER = 6
SOURCE_CLIENT_METRICS = 7
SOURCE_GROUP = 8
_WITHOUT_DEFAULT = frozenset({"advertised.listeners", "controller.listener.names", "node.id", "process.roles"})
"""Keys without a default in Kafka. pybroker's value is shown as the default if the key was not set."""


class Synonym(msgspec.Struct, frozen=True):
    """A source of the value, or of the value if the previous synonyms were not set."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """One setting with its value and source. The value of a sensitive setting is None."""

    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool
    kind: Kind | int
    """0 if the type is unknown."""
    doc: str
    synonyms: tuple[Synonym, ...]


def topic_entries(topic: TopicConfig, *, whole_chain: bool = False) -> Iterator[ConfigEntry]:
    """Yield every setting of a topic, by name. With `whole_chain`, each synonym key of the broker counts as a source.

    A key that Kafka does not have is listed only if the topic sets it. Tools that copy configurations to Apache Kafka
    would fail otherwise.
    """
    for key, value in topic.items():
        if key.ours and key.name not in topic.given:
            continue
        synonyms = tuple(_topic_synonyms(topic, key, whole_chain=whole_chain))
        yield _entry(key, value, synonyms, read_only=False)


def group_entries(group: GroupConfig) -> Iterator[ConfigEntry]:
    """Yield every setting of a group, by name."""
    for key, value in group.items():
        behind = group_synonym(key.name)
        own = [Synonym(key.name, group.given[key.name], SOURCE_GROUP)] if key.name in group.given else []
        synonyms = (*own, *_broker_synonyms(group.broker, (behind,), behind.name))
        yield _entry(key, value, synonyms, read_only=False)


def client_metrics_entries(subscription: ClientMetricsConfig) -> Iterator[ConfigEntry]:
    """Yield every setting of a client metrics subscription, by name."""
    for key, value in subscription.items():
        given = key.name in subscription.given
        synonyms = (Synonym(key.name, key.text_of(value), SOURCE_CLIENT_METRICS),) if given else ()
        yield _entry(key, value, synonyms, read_only=False)


def broker_entries(config: BrokerConfig) -> Iterator[ConfigEntry]:
    """Yield every setting of the broker, by name."""
    for key, value in config.items():
        synonyms = tuple(_broker_synonyms(config, broker_chain(key.name), key.name))
        if key.name in _WITHOUT_DEFAULT and (key.name in config.given or not value):
            synonyms = tuple(synonym for synonym in synonyms if synonym.source != SOURCE_DEFAULT)
        yield _entry(key, value if value or synonyms else None, synonyms, read_only=not key.dynamic)
    yield from _listener_entries(config)
    yield from _custom_entries(
        (config.custom_own, SOURCE_DYNAMIC_BROKER), (config.custom_default, SOURCE_DYNAMIC_DEFAULT)
    )


def _custom_entries(*layers: tuple[Mapping[str, str], int]) -> Iterator[ConfigEntry]:
    """Yield the unknown keys of the layers by name. The first layer has precedence.

    An unknown key may be a secret, so its value is not returned. It is read-only, as no rule makes it dynamic. Both are
    as in Kafka.
    """
    for name in sorted({name for configs, _ in layers for name in configs}):
        synonyms = tuple(Synonym(name, None, source) for configs, source in layers if name in configs)
        yield ConfigEntry(name, None, synonyms[0].source, True, True, 0, "", synonyms)


def _listener_entries(config: BrokerConfig) -> Iterator[ConfigEntry]:
    """Yield the dynamic settings of single listeners, by name."""
    for name, text in sorted(config.dynamic_own.items()):
        key = None if name in config.keys else key_of(name, config.keys)
        if key is not None:
            synonym = Synonym(name, _shown(key, text), SOURCE_DYNAMIC_BROKER)
            yield _entry(key, key.value_of(text), (synonym,), read_only=False)._replace(name=name)


def default_entries(config: BrokerConfig) -> Iterator[ConfigEntry]:
    """Yield the cluster-wide dynamic settings of brokers, by name."""
    for name, text in sorted(config.dynamic_default.items()):
        key = config.keys[name]
        synonym = Synonym(name, _shown(key, text), SOURCE_DYNAMIC_DEFAULT)
        yield _entry(key, key.value_of(text), (synonym,), read_only=not key.dynamic)
    yield from _custom_entries((config.custom_default, SOURCE_DYNAMIC_DEFAULT))


def logger_entries(levels: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """Yield the level of each logger, by name. As in Kafka, their type is unknown."""
    for name, level in sorted(levels.items()):
        yield ConfigEntry(name, level, SOURCE_LOGGER, False, False, 0, "", ())


def _entry(key: Key[Any], value: Any, synonyms: tuple[Synonym, ...], *, read_only: bool) -> ConfigEntry:
    sensitive = key.kind is Kind.PASSWORD
    return ConfigEntry(
        name=key.name,
        value=None if sensitive else key.text_of(value),
        source=synonyms[0].source if synonyms else SOURCE_DEFAULT,
        read_only=read_only,
        sensitive=sensitive,
        kind=key.kind,
        doc=key.doc,
        synonyms=synonyms,
    )


def _topic_synonyms(topic: TopicConfig, key: Key[Any], *, whole_chain: bool) -> Iterator[Synonym]:
    if key.name in topic.given:
        # As in Kafka, the topic's own value is shown normalized, and those of brokers as they were set.
        yield Synonym(key.name, key.text_of(getattr(topic, key.attribute)), SOURCE_TOPIC)
    chain = broker_synonyms(key.name)
    if chain:
        yield from _broker_synonyms(topic.broker, chain, None if whole_chain else chain[0].name)


def _broker_synonyms(config: BrokerConfig, chain: tuple[Key[Any], ...], first: str | None) -> Iterator[Synonym]:
    """Yield the synonyms of a chain of keys, from the first one of the key `first` on.

    This is Kafka's behaviour: a topic whose retention is set only by `log.retention.hours` has no synonym of
    `retention.ms`.
    """
    places = (
        (config.dynamic_own, SOURCE_DYNAMIC_BROKER),
        (config.dynamic_default, SOURCE_DYNAMIC_DEFAULT),
        (config.given, SOURCE_STATIC_BROKER),
        ({key.name: key.text_of(key.default) for key in chain if key.default is not None}, SOURCE_DEFAULT),
    )
    synonyms = (
        Synonym(key.name, _shown(key, texts[key.name]), source)
        for texts, source in places
        for key in chain
        if key.name in texts
    )
    return dropwhile(lambda synonym: first not in (None, synonym.name), synonyms)


def _shown(key: Key[Any], text: str | None) -> str | None:
    return None if key.kind is Kind.PASSWORD else text
