from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.config.dynamic import build_dynamic
from pybroker.config.topic import TopicConfig
from pybroker.handlers.config_entries import (
    SOURCE_DEFAULT,
    SOURCE_DYNAMIC_BROKER,
    SOURCE_DYNAMIC_DEFAULT,
    SOURCE_STATIC_BROKER,
    SOURCE_TOPIC,
    ConfigEntry,
    Synonym,
    broker_entries,
    default_entries,
    topic_entries,
)


def test_a_topics_value_names_every_place_that_would_give_one() -> None:
    broker = BrokerConfig({"log.retention.hours": "2", "log.retention.minutes": "5"})
    entries = {entry.name: entry for entry in topic_entries(TopicConfig({"retention.ms": "7"}, broker))}
    entry = entries["retention.ms"]
    assert (entry.value, entry.source, entry.read_only) == ("7", SOURCE_TOPIC, False)
    assert entry.synonyms == (Synonym("retention.ms", "7", SOURCE_TOPIC),)
    whole = {entry.name: entry for entry in topic_entries(TopicConfig({"retention.ms": "7"}, broker), whole_chain=True)}
    assert whole["retention.ms"].synonyms == (
        Synonym("retention.ms", "7", SOURCE_TOPIC),
        Synonym("log.retention.minutes", "5", SOURCE_STATIC_BROKER),
        Synonym("log.retention.hours", "2", SOURCE_STATIC_BROKER),
        Synonym("log.retention.hours", "168", SOURCE_DEFAULT),
    )


def test_a_chain_of_broker_keys_is_listed_from_the_one_of_the_same_unit_on() -> None:
    broker = BrokerConfig({"log.retention.ms": "3", "log.retention.hours": "2"})
    entries = {entry.name: entry for entry in topic_entries(TopicConfig({}, broker))}
    assert entries["retention.ms"].synonyms == (
        Synonym("log.retention.ms", "3", SOURCE_STATIC_BROKER),
        Synonym("log.retention.hours", "2", SOURCE_STATIC_BROKER),
        Synonym("log.retention.hours", "168", SOURCE_DEFAULT),
    )


def test_a_topics_value_may_come_from_the_brokers_file() -> None:
    topic = TopicConfig({}, BrokerConfig({"log.roll.hours": "1", "log.segment.bytes": "2097152"}))
    entries = {entry.name: entry for entry in topic_entries(topic)}
    assert (entries["segment.ms"].value, entries["segment.ms"].source) == ("3600000", SOURCE_DEFAULT)
    assert (entries["segment.bytes"].value, entries["segment.bytes"].source) == ("2097152", SOURCE_STATIC_BROKER)
    whole = {entry.name: entry for entry in topic_entries(topic, whole_chain=True)}
    assert whole["segment.ms"].source == SOURCE_STATIC_BROKER


def test_a_topic_lists_a_key_that_kafka_lacks_only_where_the_topic_sets_it() -> None:
    kafkas = {name for name, key in TopicConfig.keys.items() if not key.ours}
    for broker in (BrokerConfig({}), BrokerConfig({"flush": "group"})):
        assert {entry.name for entry in topic_entries(TopicConfig({}, broker))} == kafkas
        (entry,) = (entry for entry in topic_entries(TopicConfig({"flush": "group"}, broker)) if entry.name == "flush")
        assert (entry.value, entry.source) == ("group", SOURCE_TOPIC)


def test_changes_stand_over_the_brokers_file() -> None:
    static = BrokerConfig({"log.segment.bytes": "2097152"})
    config = build_dynamic(static, {"log.segment.bytes": "3145728"}, {"log.segment.bytes": "4194304"}).config
    expected = (
        Synonym("log.segment.bytes", "4194304", SOURCE_DYNAMIC_BROKER),
        Synonym("log.segment.bytes", "3145728", SOURCE_DYNAMIC_DEFAULT),
        Synonym("log.segment.bytes", "2097152", SOURCE_STATIC_BROKER),
        Synonym("log.segment.bytes", "1073741824", SOURCE_DEFAULT),
    )
    of_broker = {entry.name: entry for entry in broker_entries(config)}["log.segment.bytes"]
    of_topic = {entry.name: entry for entry in topic_entries(TopicConfig({}, config))}["segment.bytes"]
    assert of_broker.synonyms == of_topic.synonyms == expected
    assert of_broker.value == of_topic.value == "4194304"
    (of_all,) = default_entries(config)
    assert (of_all.name, of_all.value, of_all.source) == ("log.segment.bytes", "3145728", SOURCE_DYNAMIC_DEFAULT)
    assert of_all.synonyms == expected[1:2]


def test_custom_keys_are_listed_as_secrets_of_unknown_type() -> None:
    config = build_dynamic(BrokerConfig({}), {"my.custom": "a", "other": "b"}, {"my.custom": "c"}).config
    entries = {entry.name: entry for entry in broker_entries(config)}
    assert entries["my.custom"] == ConfigEntry(
        "my.custom",
        None,
        SOURCE_DYNAMIC_BROKER,
        read_only=True,
        sensitive=True,
        kind=0,
        doc="",
        synonyms=(
            Synonym("my.custom", None, SOURCE_DYNAMIC_BROKER),
            Synonym("my.custom", None, SOURCE_DYNAMIC_DEFAULT),
        ),
    )
    assert entries["other"].source == SOURCE_DYNAMIC_DEFAULT
    of_all = {entry.name: entry for entry in default_entries(config)}
    assert of_all["my.custom"].synonyms == (Synonym("my.custom", None, SOURCE_DYNAMIC_DEFAULT),)


def test_a_brokers_settings_are_read_only_unless_they_are_dynamic() -> None:
    entries = {entry.name: entry for entry in broker_entries(BrokerConfig({"node.id": "3"}))}
    assert (entries["node.id"].value, entries["node.id"].source, entries["node.id"].read_only) == (
        "3",
        SOURCE_STATIC_BROKER,
        True,
    )
    assert entries["message.max.bytes"].read_only is False
    assert entries["log.roll.ms"].value is None


def test_a_key_without_a_default_in_kafka_shows_what_was_given_alone() -> None:
    given = {entry.name: entry for entry in broker_entries(BrokerConfig({"node.id": "3"}))}
    none = {entry.name: entry for entry in broker_entries(BrokerConfig({}))}
    assert given["node.id"].synonyms == (Synonym("node.id", "3", SOURCE_STATIC_BROKER),)
    assert none["node.id"].synonyms == (Synonym("node.id", "1", SOURCE_DEFAULT),)
    assert (none["advertised.listeners"].value, none["advertised.listeners"].synonyms) == (None, ())
    assert (none["authorizer.class.name"].value, none["authorizer.class.name"].source) == ("", SOURCE_DEFAULT)


def test_the_old_name_of_the_nodes_id_is_given_with_the_new_one() -> None:
    """As Kafka does: each of the two stands for the other."""
    for name in ("node.id", "broker.id"):
        entries = {entry.name: entry for entry in broker_entries(BrokerConfig({name: "3"}))}
        assert (entries["broker.id"].value, entries["node.id"].value) == ("3", "3")
        assert entries["broker.id"].synonyms[0] == Synonym("broker.id", "3", SOURCE_STATIC_BROKER)
