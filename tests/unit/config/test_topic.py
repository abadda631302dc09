from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.topic import TopicConfig, broker_suggestion, broker_synonyms


def test_a_topic_inherits_what_it_was_not_given() -> None:
    broker = BrokerConfig({"log.segment.bytes": "2097152", "log.roll.hours": "1"})
    topic = TopicConfig({"max.message.bytes": "1000"}, broker)
    assert (topic.segment_bytes, topic.segment_ms, topic.max_message_bytes) == (2097152, 3_600_000, 1000)


def test_every_setting_of_a_topic_has_a_value() -> None:
    assert [key.name for key, value in TopicConfig({}, BrokerConfig({})).items() if value is None] == []


def test_an_unknown_topic_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: colour$"):
        TopicConfig({"colour": "1"}, BrokerConfig({}))


def test_an_unknown_topic_setting_is_reported_with_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: retension\.ms; is retention\.ms meant\?$"):
        TopicConfig({"retension.ms": "1"}, BrokerConfig({}))


def test_compaction_lags_must_not_cross() -> None:
    with pytest.raises(ConfigError, match=r"at most max\.compaction\.lag\.ms"):
        TopicConfig({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, BrokerConfig({}))


@pytest.mark.parametrize(
    ("topic_key", "names"),
    [
        ("retention.ms", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"]),
        ("segment.bytes", ["log.segment.bytes"]),
        ("remote.storage.enable", []),
    ],
)
def test_the_broker_keys_behind_a_topic_key_are_known(topic_key: str, names: list[str]) -> None:
    assert [key.name for key in broker_synonyms(topic_key)] == names


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [
        ("max.message.bytes", "message.max.bytes"),
        ("flush.ms", "log.flush.interval.ms"),
        ("remote.storage.enable", None),
        ("log.retension.ms", "log.retention.ms"),
        ("NUM_PARTITIONS", "num.partitions"),
        ("nonsense", None),
    ],
)
def test_for_a_broker_key_that_is_not_known_the_one_that_may_be_meant_is_named(unknown: str, meant: str | None) -> None:
    assert broker_suggestion(unknown) == meant


def test_what_is_wrong_with_a_stored_setting_leaves_the_others_in_force() -> None:
    stored = {"remote.storage.enable": "true", "no.such.key": "1", "retention.ms": "-1"}
    config, faults = TopicConfig.stored(stored, BrokerConfig({}))
    assert (config.retention_ms, config.remote_storage_enable, dict(config.given)) == (
        -1,
        False,
        {"retention.ms": "-1"},
    )
    assert len(faults) == 2


def test_brokers_settings_that_contradict_each_other_are_refused_and_fail_no_topic_that_is_there() -> None:
    with pytest.raises(ConfigError, match=r"log\.cleaner\.min\.compaction\.lag\.ms=10: .* which is 5"):
        BrokerConfig({"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "5"})
    broker = BrokerConfig({"log.cleaner.min.compaction.lag.ms": "10"})
    made = broker.overlaid({"log.cleaner.max.compaction.lag.ms": "5"})
    config, faults = TopicConfig.stored({"retention.ms": "7"}, made)
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms, len(faults)) == (10, 5, 2)


def test_a_stored_setting_that_contradicts_the_brokers_gives_way() -> None:
    broker = BrokerConfig({"log.cleaner.min.compaction.lag.ms": "10"})
    config, faults = TopicConfig.stored({"max.compaction.lag.ms": "5"}, broker)
    assert (config.given, len(faults)) == ({}, 1)
