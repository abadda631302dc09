"""What a receiver of OpenTelemetry's gets of a node whose clients have asked for something: right numbers and spans."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pybroker import __version__
from pybroker.client import Admin
from pybroker.metrics.registry import BY_NAME
from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.otlp import Receiver, attributes
from tests.support.wire import Wire, produce

MESSAGES_IN = "kafka_server_brokertopicmetrics_topic_messagesin"
TIMES = "kafka_network_requestmetrics_totaltime_seconds"
CUMULATIVE = 2
SERVER = 2


@pytest.fixture(scope="module")
def receiver() -> Receiver:
    """A receiver of what a broker has sent, which has ended since."""
    with Receiver() as started:
        settings = {
            "opentelemetry.endpoint": f"{started.endpoint}/",
            "opentelemetry.headers": "authorization=secret",
            "opentelemetry.interval.ms": "50",
            "opentelemetry.traces.ratio": "1",
        }
        with Broker(properties=settings) as broker, Wire(broker.bootstrap_servers, client_id="asking") as wire:
            with Admin(broker.bootstrap_servers, {"client.id": "making"}) as admin:
                admin.create_topics(["orders"])
            wire.query(produce("orders", batch_of(*[b"value"] * 30)))
            assert wire.call("DescribeGroups", 0, groups=["nobody"]).groups
            wait_until(lambda: counted(started) == 30, within=60, what="the records are counted")
            wait_until(lambda: "DescribeGroups" in names(started), within=60, what="spans are there")
        return started


def counted(receiver: Receiver) -> int:
    point = receiver.point(MESSAGES_IN, topic="orders")
    return 0 if point is None else point.as_int


def names(receiver: Receiver) -> set[str]:
    return {span.name for span in receiver.spans()}


def test_every_metric_is_a_registered_one_with_its_words_and_unit(receiver: Receiver) -> None:
    found = receiver.metrics()
    assert len(found) > 50
    for name, metric in found.items():
        registered = BY_NAME[name]
        assert metric.description == registered.help
        assert metric.unit == {"seconds": "s", "bytes": "By"}.get(registered.unit, "")
        assert metric.WhichOneof("data") == {"counter": "sum"}.get(registered.kind.value, registered.kind.value)


def test_counters_grow_from_the_start_of_the_node(receiver: Receiver) -> None:
    found = receiver.metrics()[MESSAGES_IN].sum
    assert (found.aggregation_temporality, found.is_monotonic) == (CUMULATIVE, True)
    point = receiver.point(MESSAGES_IN, topic="orders")
    assert point.as_int == 30
    assert 0 < point.start_time_unix_nano < point.time_unix_nano


def test_histograms_have_each_observation_in_one_bucket(receiver: Receiver) -> None:
    assert receiver.metrics()[TIMES].histogram.aggregation_temporality == CUMULATIVE
    point = receiver.point(TIMES, request="Produce")
    assert (point.count, sum(point.bucket_counts)) == (1, 1)
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
    assert not point.HasField("max")


def test_what_is_sent_says_whose_it_is(receiver: Receiver) -> None:
    for path, headers, message in receiver.received:
        assert headers["authorization"] == "secret"
        (sent,) = message.resource_metrics if path == "/v1/metrics" else message.resource_spans
        reported = attributes(sent.resource)
        assert (reported["service.name"], reported["service.version"]) == ("pybroker", __version__)
        assert reported["service.instance.id"] == f"{reported['kafka.cluster.id']}/1"
        assert reported["kafka.node.id"] == 1


def test_a_control_request_leaves_a_span_with_who_asked_by_which_listener(receiver: Receiver) -> None:
    (span,) = (one for one in receiver.spans() if one.name == "DescribeGroups")
    reported = attributes(span)
    assert span.kind == SERVER
    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    assert (reported["messaging.client.id"], reported["kafka.listener"]) == ("asking", "PLAINTEXT")
    assert (reported["kafka.api.key"], reported["kafka.api.version"], reported["client.address"]) == (
        15,
        0,
        "127.0.0.1",
    )
    (made,) = (attributes(one) for one in receiver.spans() if one.name == "CreateTopics")
    assert made["messaging.client.id"] == "making"
    assert "Produce" not in names(receiver)
    assert len({one.trace_id for one in receiver.spans()}) == len(receiver.spans())


def test_a_receiver_that_is_away_keeps_no_broker_from_stopping() -> None:
    with Receiver() as removed:
        endpoint = removed.endpoint
    with Broker(properties={"opentelemetry.endpoint": endpoint, "opentelemetry.interval.ms": "1"}) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics(["orders"])
        assert broker.bootstrap_servers


def test_a_broker_that_sends_nothing_imports_nothing_of_it() -> None:
    code = (
        "import sys\nfrom pybroker.testing import Broker\nwith Broker(): pass\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
