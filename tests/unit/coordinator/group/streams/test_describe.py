"""Descriptions of streams groups."""

from __future__ import annotations

from typing import Any

from pybroker.coordinator.group.events import DescribeStreamsGroups
from pybroker.protocol.messages import streams_group_heartbeat as message
from tests.support.streams_groups import StreamsWorld


def describe(world: StreamsWorld, group_id: str = "g", *, includes_description: bool = False) -> Any:
    """Describe one group."""
    (group,) = world.submit(DescribeStreamsGroups([group_id], includes_description))
    return group


def test_members_have_their_tasks_and_targets() -> None:
    world = StreamsWorld()
    world.set_topics(**{"in": 2, "words": 2, "counts": 2})
    world.join(
        "m1",
        user_endpoint=message.Endpoint(host="here", port=80),
        client_tags=[message.KeyValue(key="zone", value="a")],
    )
    world.beat("m1", 2, task_offsets=[message.TaskOffset(subtopology_id="1", partition=1, offset=7)])
    world.join("m2", instance_id="i")
    group = describe(world)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor_name == "sticky"
    one, two = group.members
    assert (one.member_id, one.process_id, one.user_endpoint.port, two.instance_id) == ("m1", "of m1", 80, "i")
    assert [(tag.key, tag.value) for tag in one.client_tags] == [("zone", "a")]
    assert [(task.subtopology_id, task.offset) for task in one.task_offsets] == [("1", 7)]
    assert sum(len(task.partitions) for task in one.assignment.active_tasks) == 4
    assert sum(len(task.partitions) for task in one.target_assignment.active_tasks) == 2
    assert two.assignment.active_tasks == []


def test_the_topology_has_counts_once_its_topics_exist() -> None:
    world = StreamsWorld()
    world.set_topics(**{"in": 3})
    world.join("m1")
    _, part = describe(world).topology.subtopologies
    assert [topic.partitions for topic in part.state_changelog_topics] == [0]
    world.set_topics(**{"in": 3, "words": 3, "counts": 3})
    _, part = describe(world).topology.subtopologies
    assert [topic.partitions for topic in part.state_changelog_topics] == [3]
    assert [(config.key, config.value) for config in part.state_changelog_topics[0].topic_configs] == [
        ("cleanup.policy", "compact")
    ]


def test_a_description_is_never_stored() -> None:
    world = StreamsWorld()
    world.set_topics(**{"in": 1})
    world.join("m1")
    assert describe(world).topology_description_status == 0
    assert describe(world, includes_description=True).topology_description_status == 1


def test_an_unknown_group_is_an_error() -> None:
    group = describe(StreamsWorld(), "other")
    assert (group.error_code, group.error_message) == (69, "Group other not found.")
