from __future__ import annotations

from typing import Any

import pytest

from pybroker.handlers.registry import registered_apis
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pybroker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pybroker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pybroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pybroker.protocol.messages.init_producer_id import InitProducerIdRequest
from pybroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.requirements import Action, NothingRequired, actions_of, resources_of
from pybroker.security.selectors import select, where

ID = bytes(range(16))


def required(name: str) -> Any:
    """What an API declares."""
    requires = registered_apis()[ApiKey[name]].requires
    assert not isinstance(requires, NothingRequired)
    return requires


def named(api: str, request: Any, version: int) -> list[list[str | bytes]]:
    """The resources of a request, requirement by requirement."""
    return [list(resources_of(one, request, version)) for one in required(api)]


def test_what_a_whole_request_needs_is_all_that_it_stands_or_falls_with() -> None:
    request = ConsumerGroupHeartbeatRequest(group_id="g", subscribed_topic_names=["t", "u"])
    assert list(actions_of(required("CONSUMER_GROUP_HEARTBEAT"), request, 0)) == [
        Action(Operation.READ, ResourceType.GROUP, "g"),
        Action(Operation.DESCRIBE, ResourceType.TOPIC, "t"),
        Action(Operation.DESCRIBE, ResourceType.TOPIC, "u"),
    ]


def test_what_a_request_does_not_name_needs_nothing() -> None:
    assert list(actions_of(required("INIT_PRODUCER_ID"), InitProducerIdRequest(transactional_id=None), 4)) == []
    assert list(actions_of(required("INIT_PRODUCER_ID"), InitProducerIdRequest(transactional_id="x"), 4)) == [
        Action(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    ]


def test_a_field_that_a_version_lacks_names_nothing() -> None:
    request = OffsetFetchRequest(
        group_id="old",
        groups=[OffsetFetchRequestGroup(group_id="new", topics=[OffsetFetchRequestTopics(name="t", topic_id=ID)])],
    )
    assert [named("OFFSET_FETCH", request, version)[:2] for version in (7, 9, 10)] == [
        [["old"], []],
        [["new"], ["t"]],
        [["new"], [ID]],
    ]


def test_null_arrays_and_ids_that_are_not_set_name_nothing() -> None:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert named("OFFSET_FETCH", request, 8)[1] == []
    topics = DeleteTopicsRequest(topics=[DeleteTopicState(name="t"), DeleteTopicState(topic_id=ID)])
    assert named("DELETE_TOPICS", topics, 6)[0] == ["t", ID]


def test_a_field_in_brackets_chooses_elements() -> None:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name)
        for kind, name in ((2, "t"), (4, "1"), (32, "g"), (2, "u"))
    ]
    request = DescribeConfigsRequest(resources=resources)
    assert named("DESCRIBE_CONFIGS", request, 4) == [["t", "u"], ["g"], [CLUSTER_NAME]]


@pytest.mark.parametrize(("kind", "found"), [(0, [["k"], [], []]), (1, [[], ["k"], []]), (2, [[], [], [CLUSTER_NAME]])])
def test_a_field_in_brackets_at_the_beginning_chooses_requests(kind: int, found: list[list[str]]) -> None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["k"])
    assert named("FIND_COORDINATOR", request, 6) == found


def test_what_is_no_field_of_a_message_is_refused() -> None:
    for refused in ("topics", DeleteTopicsRequest, None):
        with pytest.raises(TypeError, match="expected an attribute of its class"):
            select(refused)
        with pytest.raises(TypeError, match="expected an attribute of its class"):
            where(refused, 1)


def test_a_field_that_the_one_before_does_not_contain_is_refused() -> None:
    names = select(DeleteTopicsRequest.topic_names, DeleteTopicState.name)
    with pytest.raises(TypeError, match=r"DeleteTopicState\.name is not contained in topic_names"):
        names.follow(DeleteTopicsRequest())
    other = select(DeleteTopicsRequest.topics, where(DescribeConfigsResource.resource_type, 2))
    with pytest.raises(TypeError, match=r"DescribeConfigsResource\.resource_type is not contained in topics"):
        other.is_in(6)


def test_a_selector_is_shown_by_the_names_of_its_fields() -> None:
    resources, kind = DescribeConfigsRequest.resources, DescribeConfigsResource.resource_type
    assert str(select(resources, where(kind, 2), DescribeConfigsResource.resource_name)) == (
        "resources[resource_type=2].resource_name"
    )
    assert str(select(where(FindCoordinatorRequest.key_type, 0), FindCoordinatorRequest.key)) == "[key_type=0].key"
