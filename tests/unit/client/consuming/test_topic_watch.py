"""What a consumer reports of brokers that cannot be reached, and of a program that does not poll."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pybroker.client import Admin, Consumer, NewTopic, TopicPartition
from pybroker.client.errors import UnreachableError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pybroker.testing import Broker
from tests.support.conditions import wait_until

WITHIN = 60
T0 = TopicPartition("t", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1, 1)])
            admin.wait_for_leaders("t")
        yield running


@pytest.mark.parametrize("properties", [{}, {"group.id": "g"}])
def test_a_dead_broker_is_logged_by_name_once_and_raised_by_poll(
    broker: Broker, properties: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"default.api.timeout.ms": 4000, "enable.auto.commit": False, **properties}
    with caplog.at_level(logging.WARNING), Consumer(broker.bootstrap_servers, settings) as consumer:
        if properties:
            consumer.subscribe(["t"])
        else:
            consumer.assign([T0])
        wait_until(
            lambda: consumer.poll(0.1) == [] and consumer.metrics()["fetch-total"] > 0,
            within=WITHIN,
            what="nothing was fetched",
        )
        with broker.stopped():
            with pytest.raises(UnreachableError, match=r"no broker answered: broker 1 at 127\.0\.0\.1") as met:
                wait_until(lambda: consumer.poll(1.0) != [], within=WITHIN, what="poll raises nothing")
            assert "default.api.timeout.ms=4000" in str(met.value)
            lines = [r.getMessage() for r in caplog.records if r.name == "pybroker.client"]
            assert len(lines) == 1
            assert f"broker 1 at {broker.bootstrap_servers}: " in lines[0]
            assert "trying again for" in lines[0]
            consumer.close(0.0)


def test_a_partition_without_a_leader_is_logged_once_and_raises_nothing(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    without_leader = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host=host, port=int(port))],
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name="t",
                partitions=[
                    MetadataResponsePartition(
                        error_code=ErrorCode.LEADER_NOT_AVAILABLE, partition_index=0, leader_id=-1, replica_nodes=[2]
                    )
                ],
            )
        ],
    )
    settings = {"metadata.max.age.ms": 10}
    with caplog.at_level(logging.WARNING), Consumer(broker.bootstrap_servers, settings) as consumer:
        fault = broker.intercept("Metadata", lambda _request: without_leader)
        consumer.assign([T0])
        consumer.seek(T0, 0)
        wait_until(lambda: consumer.poll(0.1) != [] or "No leader" in caplog.text, within=WITHIN, what="no line")
        fault.wait(20, timeout=WITHIN)
        assert caplog.text.count("No leader of t-0: no records are fetched from it until a leader is elected") == 1


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_does_not_poll_leaves_with_a_warning(
    broker: Broker, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"group.id": "silent", "group.protocol": protocol, "max.poll.interval.ms": 1000}
    with caplog.at_level(logging.WARNING), Consumer(broker.bootstrap_servers, settings) as consumer:
        consumer.subscribe(["t"])
        wait_until(lambda: consumer.poll(0.1) == [] and bool(consumer.assignment()), within=WITHIN, what="no partition")
        wait_until(lambda: "max.poll.interval.ms=1000" in caplog.text, within=WITHIN, what="nothing is logged")
    assert "Group silent: consumer poll timeout has expired" in caplog.text


@pytest.mark.parametrize("api", ["OffsetCommit", "LeaveGroup"])
def test_close_returns_within_its_timeout_while_the_coordinator_does_not_respond(
    broker: Broker, api: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = Consumer(broker.bootstrap_servers, {"group.id": "closed", "request.timeout.ms": 600_000})
    consumer.subscribe(["t"])
    wait_until(lambda: consumer.poll(0.1) == [] and bool(consumer.assignment()), within=WITHIN, what="no partition")
    consumer.position(T0)
    fault = broker.hold(api)
    closing = threading.Thread(target=consumer.close, args=(1.0,))
    with caplog.at_level(logging.WARNING):
        closing.start()
        fault.wait(timeout=WITHIN)
        closing.join(WITHIN)
    assert not closing.is_alive(), "the request is held back for ever"
    assert "closed without its last commit or LeaveGroup: no response within 1.0 s" in caplog.text
    fault.release()
