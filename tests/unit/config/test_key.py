"""The declared keys beside those of Apache Kafka 4.3.1, taken from its own definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig

ROWS = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "kafka-4.3.1-configs.tsv").read_text().splitlines()
    if not line.startswith("#")
]
# Where we differ from Kafka, and what we have instead; the key's words say why.
OURS = {
    "log.dir": "/tmp/pybroker-logs",
    "process.roles": "broker,controller",
    "node.id": "1",
    "replica.socket.receive.buffer.bytes": "-1",
}
# Kafka reads connections.max.reauth.ms, sasl.server.max.receive.size, telemetry.max.bytes and what says where a node's
# tokens come from, and describes none of them.
NOT_IN_KAFKA = {
    "delegation.token.max.per.owner",
    "admin.http.listener",
    "metrics.clients.max",
    "metrics.topics.max",
    "opentelemetry.endpoint",
    "opentelemetry.headers",
    "opentelemetry.interval.ms",
    "opentelemetry.timeout.ms",
    "opentelemetry.traces.ratio",
    "allow.everyone.if.no.acl.found",
    "auto.create.topics.max.per.request",
    "broker.death.grace.ms",
    "congestion.control",
    "connections.max.reauth.ms",
    "controller.quorum.death.grace.ms",
    "flush",
    "leader.imbalance.per.broker.percentage",
    "queued.max.response.bytes",
    "queued.max.response.bytes.per.connection",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.mechanism.controller.protocol",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.server.max.receive.size",
    "socket.request.max.elements",
    "super.users",
    "telemetry.max.bytes",
    "telemetry.receivers",
}
# Keys of Kafka 4.4, which the list of an older Kafka lacks.
NEWER = {
    "group.streams.acceptable.recovery.lag",
    "group.streams.assignors",
    "group.streams.max.warmup.replicas",
    "group.streams.min.task.offset.interval.ms",
    "group.streams.num.warmup.replicas",
    "group.streams.rack.aware.assignment.tags",
    "group.streams.task.offset.interval.ms",
    "group.streams.topology.description.plugin.class",
}


@pytest.mark.parametrize(("name", "kind", "default", "dynamic"), [row[1:] for row in ROWS if row[0] == "broker"])
def test_a_broker_key_has_kafkas_type_default_and_mutability(name: str, kind: str, default: str, dynamic: str) -> None:
    key = BrokerConfig.keys[name]
    ours = key.text_of(key.default) or ""
    assert key.kind.name == kind
    assert ours == OURS.get(name, "" if default == "null" else default)
    assert key.dynamic == (dynamic == "true")


@pytest.mark.parametrize(("name", "kind", "default"), [row[1:4] for row in ROWS if row[0] == "topic"])
def test_a_topic_key_has_kafkas_type_and_default(name: str, kind: str, default: str) -> None:
    key = TopicConfig.keys[name]
    assert key.kind.name == kind
    assert key.text_of(getattr(TopicConfig({}, BrokerConfig({})), key.attribute)) == default


def test_a_key_that_kafka_lacks_is_said_to_be_ours() -> None:
    assert set(BrokerConfig.keys) - {row[1] for row in ROWS if row[0] == "broker"} == NOT_IN_KAFKA | NEWER
