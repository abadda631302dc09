"""Clients' metrics (KIP-714): subscriptions, raw frames, and real clients and tools that push and subscribe."""

from __future__ import annotations

import contextlib
import gzip
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import lz4.frame
import pytest
import snappy
import zstandard
from opentelemetry.proto.metrics.v1 import metrics_pb2

from pybench.peers import java
from pybroker.client import Admin, Producer
from pybroker.client.administration.topics import CLIENT_METRICS, DELETE, SET, ConfigChange
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from pybroker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from pybroker.protocol.schema import Message
from pybroker.telemetry.last_values import ClientValues
from pybroker.testing import Broker
from tests.support import kafka_tools, programs
from tests.support.conditions import wait_until
from tests.support.wire import Wire, request

PROGRAM = Path(sys.executable).with_name("pybroker")
INTERVAL = "3600000"
PAYLOADS = {0: bytes, 1: gzip.compress, 2: snappy.compress, 3: lz4.frame.compress, 4: zstandard.compress}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties={"telemetry.receivers": "last-values", "telemetry.max.bytes": "100000"}) as started:
        yield started


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as opened:
        yield opened


class Frames(Wire):
    """A connection that says what it is, and speaks the two APIs."""

    def __init__(self, broker: Broker, *, client_id: str) -> None:
        super().__init__(broker.bootstrap_servers, client_id=client_id)
        software = {"client_software_name": "frames", "client_software_version": "1.0"}
        assert self.query(request("ApiVersions", 3, **software)).error_code == 0

    def exchange(self, requested: Message, response: type[Any]) -> Any:
        """Send a request of version 0, whose header is flexible, and return its answer."""
        key = requested.__message__.api_key
        client_id = self._client_id.encode()
        head = struct.pack(f">hhih{len(client_id)}sB", key, 0, 7, len(client_id), client_id, 0)
        body = head + encode(requested, 0)
        self.socket.sendall(struct.pack(">i", len(body)) + body)
        frame = self.read_frame()
        assert struct.unpack_from(">iB", frame) == (7, 0)
        return decode(response, frame, 0, 5)[0]

    def get(self, instance_id: bytes = bytes(16)) -> GetTelemetrySubscriptionsResponse:
        """What the client is to push."""
        requested = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
        response: GetTelemetrySubscriptionsResponse = self.exchange(requested, GetTelemetrySubscriptionsResponse)
        return response

    def push(self, given: GetTelemetrySubscriptionsResponse, payload: bytes, codec: int = 0) -> int:
        """The error code of a push."""
        requested = PushTelemetryRequest(
            client_instance_id=given.client_instance_id,
            subscription_id=given.subscription_id,
            compression_type=codec,
            metrics=payload,
        )
        response: PushTelemetryResponse = self.exchange(requested, PushTelemetryResponse)
        return response.error_code


def payload_of(value: float) -> bytes:
    data = metrics_pb2.MetricsData()
    data.resource_metrics.add().scope_metrics.add().metrics.add(name="m").gauge.data_points.add(as_double=value)
    return data.SerializeToString()


@contextlib.contextmanager
def subscribed(admin: Admin, name: str, **configs: str) -> Iterator[None]:
    """A subscription while it is needed."""
    changes = [ConfigChange(key.replace("_", "."), value, SET) for key, value in configs.items()]
    admin.alter_configs(name, changes, CLIENT_METRICS)
    try:
        yield
    finally:
        admin.alter_configs(name, [ConfigChange(one.name, "", DELETE) for one in changes], CLIENT_METRICS)


def pushed_by(broker: Broker, client_id: str) -> list[ClientValues]:
    return [one for one in broker.client_metrics() if one.client.client_id == client_id]


def test_a_client_is_asked_for_what_matches_it_and_pushes_in_every_codec(broker: Broker, admin: Admin) -> None:
    match = "client_software_name=frames,client_software_version=1\\..*,client_id=raw.*"
    with subscribed(admin, "raw", metrics="m,n", interval_ms=INTERVAL, match=match):
        for codec, compress in PAYLOADS.items():
            with Frames(broker, client_id=f"raw-{codec}") as frames:
                given = frames.get()
                assert given.error_code == 0
                assert given.client_instance_id != bytes(16)
                assert given.requested_metrics == ["m", "n"]
                assert (given.push_interval_ms, given.telemetry_max_bytes) == (300_000, 100_000)
                assert (given.accepted_compression_types, given.delta_temporality) == ([4, 3, 1, 2], True)
                assert frames.push(given, compress(payload_of(codec + 0.5)), codec) == 0
                assert frames.push(given, b"") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            (pushed,) = pushed_by(broker, f"raw-{codec}")
            assert [(value.name, value.value) for value in pushed.values] == [("m", codec + 0.5)]
            assert (pushed.client.software_name, pushed.client.address) == ("frames", "127.0.0.1")
        with Frames(broker, client_id="other") as frames:
            assert frames.get().requested_metrics == []


@pytest.mark.parametrize(
    ("payload", "codec", "code"),
    [
        (gzip.compress(bytes(100_001), mtime=0), 1, ErrorCode.TELEMETRY_TOO_LARGE),
        (bytes(100_001), 0, ErrorCode.TELEMETRY_TOO_LARGE),
        (b"\xff\xff\xff", 0, ErrorCode.INVALID_RECORD),
        (b"x", 5, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
    ids=["compressed", "large", "no metrics", "unknown codec"],
)
def test_a_payload_that_cannot_be_taken_is_refused(broker: Broker, payload: bytes, codec: int, code: int) -> None:
    with Frames(broker, client_id="wrong") as frames:
        given = frames.get()
        assert frames.push(given, payload, codec) == code
        given.subscription_id ^= 1
        broker.advance(300)
        assert frames.push(given, b"") == ErrorCode.UNKNOWN_SUBSCRIPTION_ID


def test_subscriptions_are_described_listed_and_judged(admin: Admin) -> None:
    with subscribed(admin, "judged", interval_ms="100"):
        assert admin.list_config_resources(CLIENT_METRICS) == ["judged"]
        described = admin.describe_configs("judged", CLIENT_METRICS, synonyms=True)
        assert {name: (entry.value, entry.source) for name, entry in described.items()} == {
            "interval.ms": ("100", 7),
            "match": ("", 5),
            "metrics": ("", 5),
        }
        for key, value, code in (("foo", "1", 42), ("interval.ms", "1", 42), ("match", "client_id", 40)):
            with pytest.raises(Exception, match=r"client metrics configuration|interval must be|client matching") as it:
                admin.alter_configs("judged", [ConfigChange(key, value, SET)], CLIENT_METRICS)
            assert it.value.code == code  # type: ignore[attr-defined]
    assert admin.list_config_resources(CLIENT_METRICS) == []


def test_librdkafka_pushes(broker: Broker, admin: Admin) -> None:
    with subscribed(admin, "librdkafka", metrics="*", interval_ms="100", match="client_software_version=.*rdkafka.*"):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "client.id": "rd", "enable.metrics.push": True}
        )
        for _ in range(10):
            producer.produce("pushed", b"x")
        assert producer.flush(60) == 0

        def has_values() -> bool:
            return any(one.values for one in pushed_by(broker, "rd"))

        wait_until(has_values, within=60, what="librdkafka has pushed")
        (pushed,) = pushed_by(broker, "rd")
        assert any(value.name.startswith("org.apache.kafka.producer.") for value in pushed.values)
        del producer


def test_a_broker_without_receivers_does_not_serve_the_apis() -> None:
    with Broker() as silent, Wire(silent.bootstrap_servers) as wire:
        served = {api.api_key for api in wire.query(request("ApiVersions", 0)).api_keys}
        assert not {71, 72} & served
        with pytest.raises(RuntimeError, match=r"telemetry\.receivers"):
            silent.client_metrics()
        with Producer(silent.bootstrap_servers) as producer:
            producer.send("t", b"x")


def ours(*arguments: str) -> tuple[int, list[str]]:
    ran = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert not ran.stderr
    return ran.returncode, ran.stdout.splitlines()


def kafkas(*arguments: str) -> tuple[int, list[str]]:
    ran = kafka_tools.run(*arguments)
    return ran.returncode, ran.stdout.splitlines()


@pytest.mark.java
def test_subscriptions_are_made_and_shown_as_by_kafkas_tools(broker: Broker) -> None:
    programs.kafka_tools()
    at = ("--bootstrap-server", broker.bootstrap_servers)
    made = ("--alter", "--name", "tool", "--interval", "5000", "--metrics", "a.,b.", "--match", "client_id=x.*")
    assert kafkas("client-metrics", *at, *made) == (0, ["Altered client metrics config for tool."])
    assert ours("client-metrics", *at, *made) == (0, ["Altered client metrics config for tool."])
    listed = ("client-metrics", *at, "--list")
    assert ours(*listed) == kafkas(*listed) == (0, ["tool"])
    # Kafka's tool has the order of the broker's answer, which is ours.
    described = ("client-metrics", *at, "--describe", "--name", "tool")
    assert ours(*described) == kafkas(*described)
    of_configs = ("configs", *at, "--describe", "--entity-type", "client-metrics", "--entity-name", "tool")
    assert ours(*of_configs) == kafkas(*of_configs)
    wrong = ("client-metrics", *at, "--alter", "--name", "tool", "--interval", "5")
    assert ours(*wrong) == kafkas(*wrong)
    deleted = ("client-metrics", *at, "--delete", "--name", "tool")
    assert ours(*deleted) == (0, ["Deleted client metrics config for tool."])
    assert kafkas(*listed) == (0, [""])


@pytest.mark.java
def test_kafkas_own_producer_pushes(broker: Broker, admin: Admin) -> None:
    programs.kafka_tools()
    with subscribed(admin, "java", metrics="*", interval_ms="100", match="client_software_name=apache-kafka-java"):
        ran = java.run_java_tool(
            "producer-perf", "--topic", "java", "--num-records", "30", "--record-size", "10", "--throughput", "10",
            "--producer-props", f"bootstrap.servers={broker.bootstrap_servers}", "client.id=java-perf",
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        (pushed,) = pushed_by(broker, "java-perf")
        assert pushed.client.software_version == java.KAFKA_VERSION
        names = {value.name for value in pushed.values}
        assert "org.apache.kafka.producer.record.send.total" in names
