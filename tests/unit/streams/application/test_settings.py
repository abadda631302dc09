from __future__ import annotations

from typing import Any

import pytest

from pybroker.client.errors import SettingError
from pybroker.streams import CONTINUE, ErrorContext, Response, StreamsError, log_and_continue, log_and_fail
from pybroker.streams.application.settings import parse_settings

REQUIRED = {"application.id": "app", "bootstrap.servers": "localhost:9092"}


def _skip(_context: ErrorContext, _error: Exception) -> Response:
    return CONTINUE


def test_defaults_are_those_of_kafka() -> None:
    settings = parse_settings(REQUIRED)
    assert (settings.threads, settings.commit_interval_ms, settings.poll_ms) == (1, 30_000, 100)
    assert (settings.buffered_records, settings.task_timeout_ms, settings.replication_factor) == (1_000, 300_000, -1)
    assert settings.config.state_dir is not None
    assert settings.config.state_dir.name == "kafka-streams"
    assert settings.clients.main["auto.offset.reset"] == "earliest"
    assert settings.clients.main["max.poll.records"] == 1_000
    assert settings.clients.producer["linger.ms"] == 100


def test_exactly_once_commits_often_and_reads_committed_records() -> None:
    settings = parse_settings({**REQUIRED, "processing.guarantee": "exactly_once_v2"})
    assert (settings.exactly_once, settings.commit_interval_ms) == (True, 100)
    assert settings.clients.main["isolation.level"] == "read_committed"
    assert settings.clients.restore["isolation.level"] == "read_committed"
    assert settings.clients.producer["transaction.timeout.ms"] == 10_000


def test_prefixes_address_clients_and_topics() -> None:
    settings = parse_settings(
        {
            **REQUIRED,
            "request.timeout.ms": 1_000,
            "consumer.max.poll.records": 7,
            "main.consumer.fetch.min.bytes": 5,
            "restore.consumer.fetch.min.bytes": 6,
            "producer.linger.ms": 3,
            "topic.retention.bytes": 100,
        }
    )
    clients = settings.clients
    assert (clients.main["max.poll.records"], clients.restore["max.poll.records"]) == (7, 7)
    assert (clients.main["fetch.min.bytes"], clients.restore["fetch.min.bytes"]) == (5, 6)
    assert "fetch.min.bytes" not in clients.globals
    assert clients.producer["linger.ms"] == 3
    assert {p["request.timeout.ms"] for p in (clients.main, clients.restore, clients.producer, clients.admin)} == {
        1_000
    }
    assert settings.topic_configs == {"retention.bytes": "100"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"application.id": ""}, "missing required setting 'application.id'"),
        ({"bootstrap.servers": None}, "missing required setting 'bootstrap.servers'"),
        ({"num.stream.threads": 0}, "invalid value 0 for 'num.stream.threads': expected an integer >= 1"),
        ({"commit.interval.ms": "soon"}, "invalid value 'soon' for 'commit.interval.ms': expected an integer >= 0"),
        ({"processing.guarantee": "exactly_once"}, "expected at_least_once or exactly_once_v2"),
        ({"group.protocol": "classic"}, "expected streams: applications join streams groups"),
        ({"num.standby.replicas": 1}, "group configuration streams.num.standby.replicas"),
        ({"max.warmup.replicas": 1}, "group configuration streams.num.warmup.replicas"),
        ({"application.server": "here"}, "invalid value 'here' for 'application.server': expected host:port"),
        ({"application.server": "here:70000"}, "expected host:port"),
        ({"application.server": "here:0"}, "expected host:port"),
        ({"application.server": "over there:80"}, "expected host:port"),
        ({"processing.exception.handler": "ignore"}, "expected a function .* or one of fail, continue"),
        ({"errors.dead.letter.queue.topic.name": ""}, "expected the name of a topic"),
        ({"consumer.group.id": "other"}, "invalid value 'other' for 'group.id': expected no value"),
        ({"transactional.id": "mine"}, "invalid value 'mine' for 'transactional.id': expected no value"),
        ({"group.instance.id": "one"}, "invalid value 'one' for 'group.instance.id': .* no static members"),
        ({"main.consumer.group.instance.id": "one"}, "no static members"),
        (
            {"processing.guarantee": "exactly_once_v2", "commit.interval.ms": 20_000},
            r"invalid value 10000 for 'producer.transaction.timeout.ms': .* commit.interval.ms \(20000\)",
        ),
        ({"no.such.key": 1}, "unknown settings no.such.key: expected keys of Kafka's StreamsConfig or clients$"),
        ({"num.stream.thread": 2}, r"unknown settings num.stream.thread: .* Did you mean num.stream.threads\?"),
        ({"fetch.max.byte": 2}, r"Did you mean fetch.max.bytes\?"),
    ],
)
def test_a_value_that_cannot_be_honoured_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(StreamsError, match=message):
        parse_settings({**REQUIRED, **given})


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        ("10.0.0.1:7070", ("10.0.0.1", 7070)),
        ("http://host.example:80", ("host.example", 80)),
        ("[2001:db8::1]:7070", ("2001:db8::1", 7070)),
        ("", None),
    ],
)
def test_the_server_of_an_application_is_an_address(given: str, endpoint: tuple[str, int] | None) -> None:
    assert parse_settings({**REQUIRED, "application.server": given}).endpoint == endpoint


def test_a_client_checks_the_keys_of_its_prefix() -> None:
    with pytest.raises(SettingError, match=r"max\.poll\.records"):
        parse_settings({**REQUIRED, "consumer.max.poll.records": 0})


@pytest.mark.parametrize(
    ("name", "handler"),
    [
        ("fail", log_and_fail),
        ("continue", log_and_continue),
        ("org.apache.kafka.streams.errors.LogAndContinueExceptionHandler", log_and_continue),
        (_skip, _skip),
    ],
)
def test_handlers_are_functions_or_names(name: Any, handler: Any) -> None:
    settings = parse_settings({**REQUIRED, "deserialization.exception.handler": name})
    assert settings.handlers.deserialization is handler
    assert settings.handlers.processing is log_and_fail
