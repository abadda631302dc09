"""Kafka's keys become settings, or are refused by name before anything is connected."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from pybroker.client import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncFetcher,
    AsyncProducer,
    ColumnFetcher,
    Consumer,
    Fetcher,
    Producer,
)
from pybroker.client.errors import SettingError
from pybroker.client.settings import (
    AdminSettings,
    ClientSettings,
    ConsumerSettings,
    FetcherSettings,
    ProducerSettings,
    parse_duration_ms,
)

SERVERS = {"bootstrap.servers": "h:1"}
NOWHERE = "127.0.0.1:9"
CLIENTS = [
    Producer, AsyncProducer, Fetcher, AsyncFetcher, ColumnFetcher, Consumer, AsyncConsumer, Admin, AsyncAdmin
]  # fmt: skip


def test_keys_are_kafkas_and_values_may_be_text() -> None:
    settings = ProducerSettings.from_properties({**SERVERS, "linger.ms": "7.5", "batch.size": "10", "acks": "-1"})
    assert (settings.bootstrap_servers, settings.linger_ms, settings.batch_size) == ("h:1", 7.5, 10)
    assert (settings.acks_number(), settings.is_idempotent()) == (-1, True)


@pytest.mark.parametrize(
    ("properties", "idempotent"),
    [
        ({}, True),
        ({"acks": "1"}, False),
        ({"enable.idempotence": "false"}, False),
    ],
)
def test_idempotence_is_on_unless_something_forbids_it(properties: dict[str, str], idempotent: bool) -> None:
    assert ProducerSettings.from_properties({**SERVERS, **properties}).is_idempotent() is idempotent


def test_properties_are_checked_without_knowing_the_servers() -> None:
    ProducerSettings.check({"linger.ms": "7.5"})
    with pytest.raises(SettingError, match=r"linger\.ms=-1: must be"):
        ProducerSettings.check({"linger.ms": "-1"})


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"client.ip": "x"}, "client.ip=x: {} has no such setting; is client.id meant?"),
        ({"client_id": "x"}, "client_id=x: {} has no such setting; is client.id meant?"),
        (
            {"security.protocol": "TLS"},
            "security.protocol=TLS: must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        ({"ssl.provider": "x"}, "ssl.provider=x: must be absent: pybroker does not run on a JVM"),
        ({"sasl.passwort": "x"}, "sasl.passwort=[hidden]: {} has no such setting; is sasl.password meant?"),
        ({"metric.reporters": "a.B"}, "metric.reporters=a.B: must be empty or org.apache.kafka.common"),
        ({"socket.timeout.ms": 5}, "socket.timeout.ms=5: a setting of librdkafka; Kafka's name is request.timeout.ms"),
        ({"stats_cb": 5}, "stats_cb=5: a setting of librdkafka; this client has no equivalent"),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms=soon: must be a whole number from 0 to 2147483647"),
        ({"request.timeout.ms": -1}, "request.timeout.ms=-1: must be a whole number from 0 to 2147483647"),
        ({"bootstrap.servers": "other:1"}, "bootstrap.servers=other:1: the servers argument is"),
        ({7: "x"}, "7 is not a setting: expected a string"),
    ],
    ids=str,
)
def test_every_client_refuses_what_it_cannot_honour_before_it_connects(
    client: Callable[..., Any], properties: dict[Any, object], words: str
) -> None:
    kind = re.sub(r"^Async|^Column", "", client.__name__).lower()
    message = words.format(f"a{'n' if kind == 'admin' else ''} {kind}")
    with pytest.raises(SettingError, match=f"^{re.escape(message)}"):
        client(NOWHERE, properties)


@pytest.mark.parametrize("client", CLIENTS)
def test_servers_come_before_settings(client: Callable[..., Any]) -> None:
    with pytest.raises(SettingError, match="are the first argument, settings the second"):
        client({"bootstrap.servers": NOWHERE})


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(SettingError) as refused:
        Producer(NOWHERE, {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "s3cret"})
    assert "s3cret" not in str(refused.value)


def test_what_keeps_its_meaning_is_taken_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    harmless = {
        "security.protocol": "plaintext",
        "client.dns.lookup": "use_all_dns_ips",
        "metric.reporters": "",
        "interceptor.classes": [],
        "transactional.id": None,
        "connections.max.idle.ms": 540_000,
        "enable.metrics.push": False,
        "bootstrap.servers": [NOWHERE],
    }
    with Producer(NOWHERE, harmless), Consumer(NOWHERE, {**harmless, "group.id": "g"}):
        pass
    assert caplog.messages == []


def test_what_has_no_effect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with Fetcher(NOWHERE, {"group.id": "g", "connections.max.idle.ms": 1, "acks": "1", "fetch.min.bytes": 2}):
        pass
    assert [(r.name, r.levelno, r.getMessage()) for r in caplog.records] == [
        ("pybroker.client", logging.WARNING, "acks=1 has no effect on a fetcher"),
        ("pybroker.client", logging.WARNING, "connections.max.idle.ms=1 has no effect on a fetcher"),
        ("pybroker.client", logging.WARNING, "group.id=g has no effect on a fetcher"),
    ]


def test_what_acts_on_another_client_is_taken_from_its_settings() -> None:
    of_a_producer = {"acks": "all", "linger.ms": "5", "client.id": "c", "request.timeout.ms": "7", "lingr.ms": "1"}
    assert AdminSettings.acting(of_a_producer) == {"client.id": "c", "request.timeout.ms": "7"}
    assert FetcherSettings.acting(of_a_producer) == {"client.id": "c", "request.timeout.ms": "7"}


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"transactional.id": ""}, "transactional.id is empty: set a name, or remove the setting"),
        (
            {"transactional.id": "t", "enable.idempotence": False},
            "transactional.id=t: needs enable.idempotence=true, which is the default",
        ),
        ({"transactional.id": "t", "acks": 1}, "acks=1: must be all with transactional.id=t"),
        ({"transactional.id": "t", "retries": 0}, "retries=0: must be at least 1 with transactional.id=t"),
        (
            {"transactional.id": "t", "max.in.flight.requests.per.connection": 6},
            "max.in.flight.requests.per.connection=6: must be at most 5",
        ),
        ({"transaction.timeout.ms": 0}, "transaction.timeout.ms=0: must be a whole number from 1"),
        ({"transaction.two.phase.commit.enable": True}, "transaction.two.phase.commit.enable=true: must be false"),
        ({"interceptor.classes": "a.B"}, "interceptor.classes=a.B: must be empty"),
        ({"acks": "2"}, "acks=2: must be one of 0, 1, all, -1"),
        ({"acks": 1, "enable.idempotence": True}, "acks=1: must be all with enable.idempotence=true"),
        (
            {"max.in.flight.requests.per.connection": 6, "acks": 1},
            "max.in.flight.requests.per.connection=6: must be at most 5, unless enable.idempotence=false",
        ),
        (
            {"delivery.timeout.ms": 30_000, "linger.ms": 1},
            "delivery.timeout.ms=30000: must be at least linger.ms + request.timeout.ms, which is 30001",
        ),
        ({"compression.type": "zip"}, "compression.type=zip: must be one of none, gzip, snappy, lz4, zstd"),
        ({"linger.ms": "inf"}, "linger.ms=inf: must be a number from 0.0"),
    ],
    ids=str,
)
def test_a_producer_refuses_what_kafkas_refuses(properties: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(words)}"):
        Producer(NOWHERE, properties)


def test_delivery_has_time_for_one_request_unless_it_is_given() -> None:
    settings = ProducerSettings.from_properties({**SERVERS, "request.timeout.ms": 200_000})
    assert settings.delivery_timeout_ms == 200_005


def test_a_codec_has_the_level_of_its_own_key() -> None:
    levels = {"compression.lz4.level": 12, "compression.zstd.level": 7, "compression.gzip.level": -1}

    def level(codec: str, **more: object) -> int | None:
        given = {**SERVERS, **levels, "compression.type": codec, **more}
        return ProducerSettings.from_properties(given).compression_level

    assert [level(codec) for codec in ("none", "lz4", "zstd", "gzip")] == [None, 12, 7, None]
    assert level("snappy", **{"compression.level": 3}) == 3


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
    message = "bootstrap.servers=h:1,nonsense: expected host:port, with a port from 1 to 65535, instead of nonsense"
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        FetcherSettings.from_properties({"bootstrap.servers": "h:1,nonsense"})


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("PT1.5S", 1500), ("P2DT3H", 183_600_000), ("-PT1M", -60_000), ("pt1h", 3_600_000), ("PT-1M", -60_000)],
)
def test_durations_are_read_as_java_reads_them(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1H", "1", "PT1", "P1M", "P999999999999D", "P" + "9" * 400 + "D"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="is not a duration"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"group.protocol": "share"}, "must be one of classic, consumer"),
        ({"group.protocol": "consumer", "session.timeout.ms": 6000}, "session.timeout.ms cannot be set"),
        ({"group.protocol": "consumer", "partition.assignment.strategy": "range"}, "strategy cannot be set"),
        ({"group.remote.assignor": "range"}, "group.remote.assignor cannot be set"),
        ({"enable.auto.commit": True}, "need a group.id"),
        ({"group.instance.id": "i"}, "need a group.id"),
        ({"group.id": " "}, "group.id=: must be a non-empty string"),
        ({"group.id": "g", "isolation.level": "snapshot"}, "must be one of read_uncommitted, read_committed"),
        (
            {"group.id": "g", "session.timeout.ms": 3000},
            "heartbeat.interval.ms=3000: must be less than session.timeout.ms, which is 3000",
        ),
        ({"auto.offset.reset": "smallest"}, "auto.offset.reset=smallest: must be earliest, latest, none, or by_dura"),
        ({"auto.offset.reset": "by_duration:-PT1H"}, "auto.offset.reset=by_duration:-PT1H: must be"),
        ({"share.acquire.mode": "record_limit"}, "share consumers are not supported yet"),
    ],
    ids=str,
)
def test_a_consumer_refuses_what_kafkas_refuses(properties: dict[str, object], text: str) -> None:
    with pytest.raises(SettingError, match=re.escape(text)):
        Consumer(NOWHERE, properties)


def test_a_protocol_may_be_written_in_any_case() -> None:
    settings = ConsumerSettings.from_properties({**SERVERS, "group.id": "g", "group.protocol": "CONSUMER"})
    assert settings.group_protocol == "consumer"


def test_an_admin_waits_for_one_request_at_least() -> None:
    assert AdminSettings.from_properties({**SERVERS, "request.timeout.ms": 90_000}).default_api_timeout_ms == 90_000
    with pytest.raises(SettingError, match=r"default.api.timeout.ms=1: must be at least request.timeout.ms"):
        Admin(NOWHERE, {"default.api.timeout.ms": 1})


def test_a_consumer_commits_by_itself_only_in_a_group() -> None:
    alone = ConsumerSettings.from_properties({"bootstrap.servers": "h:1"})
    member = ConsumerSettings.from_properties({"bootstrap.servers": "h:1", "group.id": "g"})
    assert (alone.commits_itself, member.commits_itself) == (False, True)


def test_every_default_may_be_given() -> None:
    for kind in ClientSettings.kinds:
        texts = {name: key.text_of(key.default) for name, key in kind.keys.items() if name not in kind.objects}
        given = {**texts, **SERVERS, "group.id": "g"}
        assert vars(kind.from_properties(given)).items() >= {"client_id": "pybroker", "retry_backoff_ms": 100}.items()
