"""Members of the classic protocol in a consumer group: their timeouts and their ids."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pybroker.coordinator.group import errors, events
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pybroker.protocol.messages.consumer_protocol import encode_framed
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from pybroker.protocol.messages.heartbeat import HeartbeatRequest
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.simulation.consumer_world import World

A = b"a" * 16
METADATA = encode_framed(ConsumerProtocolSubscription(topics=["a"]), 1)
CLIENT = events.Client("c", "/h")


@pytest.fixture
def world() -> World:
    """A coordinator of a consumer group with one member of KIP-848, and the topic a with four partitions."""
    world = World(Random(0))
    world.topics = Topics({"a": TopicInfo(A, 4)}, {A: "a"}, 0)
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="modern",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["b"],
        topic_partitions=[],
    )
    world.submit(events.ConsumerHeartbeat(request, 1, CLIENT, "fresh"))
    return world


def join(world: World, version: int, **reported: Any) -> Any:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=METADATA)]
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=20_000, protocol_type="consumer", protocols=protocols, **reported
    )
    return world.submit(events.JoinGroup(request, version, CLIENT, "new"))


def beat(world: World, joined: Any) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    world.submit(events.Heartbeat(request))


def test_a_member_of_version_0_has_its_session_timeout_to_ask_for_its_assignment(world: World) -> None:
    joined = join(world, 0)
    beat(world, joined)
    assert world.group.members["new"].rebalance_timeout_ms == 20_000
    world.pass_time(19_999)
    assert "new" in world.group.members
    beat(world, joined)
    world.pass_time(1)
    assert "new" not in world.group.members


def test_a_member_of_a_later_version_has_the_rebalance_timeout_that_it_names(world: World) -> None:
    join(world, 3, rebalance_timeout_ms=7_000)
    assert world.group.members["new"].rebalance_timeout_ms == 7_000


def test_an_empty_instance_id_is_one(world: World) -> None:
    world.pass_time(1_000)
    joined = join(world, 9, group_instance_id="", rebalance_timeout_ms=7_000)
    assert world.group.static_members == {"": joined.member_id}
    assert world.group.members[joined.member_id].assigned == {A: dict.fromkeys(range(4), joined.generation_id)}


def test_a_member_with_the_empty_instance_id_is_fenced_by_the_next_one(world: World) -> None:
    before = join(world, 9, group_instance_id="", rebalance_timeout_ms=7_000)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=20_000,
        rebalance_timeout_ms=7_000,
        group_instance_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
    )
    after = world.submit(events.JoinGroup(request, 9, CLIENT, "newer"))
    assert (before.member_id, after.member_id) == ("new", "newer")
    assert set(world.group.members) == {"modern", "newer"}
    reported = HeartbeatRequest(group_id="g", generation_id=2, member_id="new", group_instance_id="")
    with pytest.raises(errors.FencedInstanceIdError):
        world.submit(events.Heartbeat(reported))
