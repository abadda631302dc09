"""What passes when a test broker's clock is set ahead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced


def make_topic(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["t"])


def append(broker: Broker, topic: str = "t") -> int:
    with Wire(broker.bootstrap_servers) as wire:
        response = produced(wire.query(produce(topic, batch_of(b"x"))))
        assert response.error_code == 0
        return response.base_offset


def test_a_session_ends_when_its_time_has_passed_by_the_brokers_clock(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        joined = join(wire)
        alive = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
        sync = {**alive, "assignments": [{"member_id": joined.member_id, "assignment": b""}]}
        assert wire.call("SyncGroup", 2, **sync).error_code == 0
        broker.advance(timedelta(seconds=29))
        assert wire.call("Heartbeat", 2, **alive).error_code == 0
        broker.advance(29)
        assert wire.call("Heartbeat", 2, **alive).error_code == 0
        broker.advance(31)
        assert wire.call("Heartbeat", 2, **alive).error_code == 25, "UNKNOWN_MEMBER_ID"


def join(wire: Wire) -> Any:
    requested = {
        "group_id": "g",
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }

    def responded() -> Any:
        response = wire.call("JoinGroup", 3, **requested)
        return response if response.error_code == 0 else None

    wait_until(lambda: wire.call("FindCoordinator", 2, key="g", key_type=0).error_code == 0, within=60, what="found")
    return wait_until(responded, within=60, what="a member")


@pytest.mark.broker(log_retention_ms=86_400_000)
def test_retention_deletes_when_its_time_has_passed_and_not_before(broker: Broker) -> None:
    make_topic(broker)
    append(broker)
    broker.advance(timedelta(hours=23))
    append(broker)
    assert log_start(broker) == 0
    broker.advance(timedelta(hours=25))
    assert log_start(broker) == 2, "advance returns when retention has run"


@pytest.mark.broker(properties={"log.message.timestamp.type": "LogAppendTime"})
def test_records_are_stamped_by_the_brokers_clock_also_after_a_restart(broker: Broker) -> None:
    make_topic(broker)
    stamps = []
    for act in (lambda: broker.advance(timedelta(days=365)), broker.restart, lambda: None):
        with Wire(broker.bootstrap_servers) as wire:
            stamps.append(produced(wire.query(produce("t", batch_of(b"x")))).log_append_time_ms)
        act()
    year = 365 * 86_400_000
    assert year <= stamps[1] - stamps[0] < year + 120_000
    assert 0 <= stamps[2] - stamps[1] < 120_000


def log_start(broker: Broker) -> int:
    with Wire(broker.bootstrap_servers) as wire:
        return fetched(wire.query(fetch("t", 2))).log_start_offset
