from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.handlers.config_entries import (
    SOURCE_DEFAULT,
    SOURCE_STATIC_BROKER,
    SOURCE_TOPIC,
    Synonym,
    broker_entries,
    topic_entries,
)


def test_a_topics_value_names_every_place_that_would_give_one() -> None:
    broker = BrokerConfig({"log.retention.hours": "2", "log.retention.minutes": "5"})
    entries = {entry.name: entry for entry in topic_entries(TopicConfig({"retention.ms": "7"}, broker))}
    entry = entries["retention.ms"]
    assert (entry.value, entry.source, entry.read_only) == ("7", SOURCE_TOPIC, False)
    assert entry.synonyms == (
        Synonym("retention.ms", "7", SOURCE_TOPIC),
        Synonym("log.retention.minutes", "5", SOURCE_STATIC_BROKER),
        Synonym("log.retention.hours", "2", SOURCE_STATIC_BROKER),
        Synonym("log.retention.hours", "168", SOURCE_DEFAULT),
    )


def test_a_topics_value_may_come_from_the_brokers_file() -> None:
    entries = {entry.name: entry for entry in topic_entries(TopicConfig({}, BrokerConfig({"log.roll.hours": "1"})))}
    assert (entries["segment.ms"].value, entries["segment.ms"].source) == ("3600000", SOURCE_STATIC_BROKER)
    assert (entries["segment.bytes"].value, entries["segment.bytes"].source) == ("1073741824", SOURCE_DEFAULT)


def test_a_brokers_settings_are_read_only_unless_they_are_dynamic() -> None:
    entries = {entry.name: entry for entry in broker_entries(BrokerConfig({"node.id": "3"}))}
    assert (entries["node.id"].value, entries["node.id"].source, entries["node.id"].read_only) == (
        "3",
        SOURCE_STATIC_BROKER,
        True,
    )
    assert entries["message.max.bytes"].read_only is False
    assert entries["log.roll.ms"].value is None
