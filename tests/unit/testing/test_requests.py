"""What a recorded request says of itself, for every API that names topics or groups."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.handlers.registry import registered_apis
from pybroker.testing import Broker
from pybroker.testing.requests import names_groups, names_topics
from tests.support.batches import batch_of
from tests.support.wire import Wire, fetch, produce


def test_recorded_requests_say_what_came_and_when(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["t"])
    with Wire(broker.bootstrap_servers, client_id="me") as wire, broker.recording() as requests:
        wire.query(produce("t", batch_of(b"x"), version=9))
        wire.query(fetch("t", version=12))
        wire.call("Heartbeat", 2, group_id="g", generation_id=1, member_id="m")
    one, two, three = requests
    assert [(r.api, r.api_key, r.version, r.client_id, r.correlation_id) for r in requests] == [
        ("Produce", 0, 9, "me", 1),
        ("Fetch", 1, 12, "me", 2),
        ("Heartbeat", 12, 2, "me", 3),
    ]
    assert one.message.topic_data[0].partition_data[0].records
    assert (one.topics, two.partitions, three.groups) == ({"t"}, {"t": {0}}, {"g"})
    assert one.connection == two.connection == three.connection
    assert one.time_ms <= two.time_ms <= three.time_ms
    assert repr(one).startswith("<Produce v9 from 'me' at 127.0.0.1:")


def test_nothing_is_recorded_outside_of_a_block_and_old_requests_give_way(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        wire.call("ListGroups", 3)
        with broker.recording() as requests:
            for _ in range(1010):
                wire.call("ListGroups", 3)
        wire.call("ListGroups", 3)
    assert (len(requests), requests.dropped, requests[-1].correlation_id) == (1000, 10, 1011)
    requests.clear()
    assert list(requests) == []


def test_waiting_for_requests_returns_them_or_says_what_came(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire, broker.recording() as requests:
        wire.call("ListGroups", 3)
        assert [found.api for found in requests.wait_for("ListGroups")] == ["ListGroups"]
        with pytest.raises(
            TimeoutError, match=r"0 of 1 Produce requests arrived within 0 s; recorded: \['ListGroups'\]"
        ):
            requests.wait_for("Produce", timeout=0)
        with pytest.raises(TimeoutError):
            requests.wait_for("ListGroups", where=lambda found: found.client_id == "other", timeout=0)


def test_apis_that_name_topics_or_groups_are_known() -> None:
    apis = registered_apis().values()
    without = {
        "ApiVersions",
        "ListGroups",
        "InitProducerId",
        "UpdateFeatures",
        "DescribeCluster",
        "ListConfigResources",
    }
    neither = {api.name for api in apis if not names_topics(api) and not names_groups(api)}
    assert neither >= without & {api.name for api in apis}
    assert {"Produce", "Fetch", "Metadata", "OffsetFetch", "DescribeConfigs", "ConsumerGroupHeartbeat"}.isdisjoint(
        neither
    )
    assert {api.name for api in apis if names_groups(api)} >= {
        "JoinGroup",
        "OffsetCommit",
        "FindCoordinator",
        "DeleteGroups",
    }


def test_topics_and_groups_are_found_wherever_a_version_has_them(broker: Broker) -> None:
    requested: list[tuple[str, int, dict[str, Any]]] = [
        ("OffsetFetch", 5, {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [1, 2]}]}),
        (
            "OffsetFetch",
            8,
            {
                "groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [1, 2]}]}],
                "require_stable": False,
            },
        ),
    ]
    with Wire(broker.bootstrap_servers) as wire, broker.recording() as requests:
        for name, version, fields in requested:
            wire.call(name, version, **fields)
        wire.call(
            "DescribeConfigs", 1, resources=[{"resource_type": 2, "resource_name": "t", "configuration_keys": None}]
        )
        wire.call(
            "DescribeConfigs", 1, resources=[{"resource_type": 4, "resource_name": "1", "configuration_keys": None}]
        )
        wire.call("Metadata", 9, topics=None)
    assert [dict(one.partitions) for one in requests] == [{"t": {1, 2}}, {"t": {1, 2}}, {"t": set()}, {}, {}]
    assert [set(one.groups) for one in requests] == [{"g"}, {"g"}, set(), set(), set()]
