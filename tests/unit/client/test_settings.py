"""Kafka's keys become settings."""

from __future__ import annotations

import re

import pytest

from pybroker.client.errors import SettingError
from pybroker.client.settings import (
    ConsumerSettings,
    FetcherSettings,
    ProducerSettings,
    parse_duration_ms,
    read_properties,
)

SERVERS = {"bootstrap.servers": "h:1"}


def test_keys_are_kafkas_and_values_may_be_text() -> None:
    settings = ProducerSettings.from_properties({**SERVERS, "linger.ms": "7.5", "batch.size": "10", "acks": "-1"})
    assert (settings.bootstrap_servers, settings.linger_ms, settings.batch_size) == ("h:1", 7.5, 10)
    assert (settings.acks_number(), settings.is_idempotent()) == (-1, True)


@pytest.mark.parametrize(
    ("properties", "idempotent"),
    [
        ({}, True),
        ({"acks": "1"}, False),
        ({"max.in.flight.requests.per.connection": "6"}, False),
        ({"enable.idempotence": "false"}, False),
    ],
)
def test_idempotence_is_on_unless_something_forbids_it(properties: dict[str, str], idempotent: bool) -> None:
    assert ProducerSettings.from_properties({**SERVERS, **properties}).is_idempotent() is idempotent


def test_unknown_keys_are_told_and_serializers_are_not() -> None:
    properties = {**SERVERS, "linger.sm": "1", "key.serializer": "x", "check.crcs": "true"}
    assert ProducerSettings.unknown_keys(properties) == ["check.crcs", "linger.sm"]
    assert FetcherSettings.unknown_keys(properties) == ["linger.sm"]


@pytest.mark.parametrize(("key", "value"), [("check.crcs", "yes"), ("fetch.min.bytes", "1.5"), ("fetch.min.bytes", "")])
def test_a_value_that_cannot_be_read_is_named(key: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"{key}={value}: must be "):
        FetcherSettings.from_properties({**SERVERS, key: value})


def test_a_server_must_be_named() -> None:
    with pytest.raises(SettingError, match=r"bootstrap.servers is not set"):
        ProducerSettings.from_properties({})


def test_servers_are_read_once_for_all_clients() -> None:
    settings = ProducerSettings.from_properties({"bootstrap.servers": " :9092, ::1:9093,:09092"})
    assert settings.bootstrap_servers == "localhost:9092,[::1]:9093"
    told = "bootstrap.servers=h:1,nonsense: expected host:port, with a port from 1 to 65535, instead of nonsense"
    with pytest.raises(SettingError, match=f"^{re.escape(told)}$"):
        FetcherSettings.from_properties({"bootstrap.servers": "h:1,nonsense"})


def test_a_properties_file_is_read_line_by_line() -> None:
    assert read_properties("# c\n! d\n a = b=c \n\nx=\n") == {"a": "b=c", "x": ""}


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("PT1.5S", 1500), ("P2DT3H", 183_600_000), ("-PT1M", -60_000), ("pt1h", 3_600_000), ("PT-1M", -60_000)],
)
def test_durations_are_read_as_java_reads_them(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1H", "1", "PT1", "P1M", "P999999999999D", "P" + "9" * 400 + "D"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="is no duration"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"group.protocol": "share"}, "must be classic or consumer"),
        ({"group.protocol": "consumer", "session.timeout.ms": 6000}, "session.timeout.ms cannot be set"),
        ({"group.remote.assignor": "range"}, "group.remote.assignor cannot be set"),
        ({"enable.auto.commit": True}, "need a group.id"),
        ({"group.instance.id": "i"}, "need a group.id"),
        ({"group.id": "g", "isolation.level": "snapshot"}, "must be read_uncommitted or read_committed"),
    ],
)
def test_a_consumer_refuses_what_kafkas_refuses(properties: dict[str, object], text: str) -> None:
    given = {"bootstrap.servers": "h:1", **properties}
    with pytest.raises(SettingError, match=text):
        ConsumerSettings.from_properties(given).check(given)


def test_a_consumer_commits_by_itself_only_in_a_group() -> None:
    alone = ConsumerSettings.from_properties({"bootstrap.servers": "h:1"})
    member = ConsumerSettings.from_properties({"bootstrap.servers": "h:1", "group.id": "g"})
    assert (alone.commits_itself, member.commits_itself) == (False, True)
