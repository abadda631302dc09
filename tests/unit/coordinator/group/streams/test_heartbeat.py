"""Heartbeats of a streams group: their effects, their responses, and their errors, with Kafka's messages."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group import errors
from pybroker.coordinator.group.events import DeleteGroups
from pybroker.coordinator.group.reconciled.timers import revocation_key, session_key
from pybroker.coordinator.group.streams.member import MemberState
from pybroker.coordinator.group.streams.status import StatusCode
from pybroker.protocol.messages import streams_group_heartbeat as message
from tests.support.streams_groups import TOPOLOGY, StreamsWorld, active_of, standby_of, statuses_of


@pytest.fixture
def world() -> StreamsWorld:
    """A coordinator, and the topics of the word count with two partitions each."""
    world = StreamsWorld()
    world.set_topics(**{"in": 2, "words": 2, "counts": 2})
    return world


def test_the_first_member_gets_all_tasks(world: StreamsWorld) -> None:
    response = world.join("m1")
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("m1", 2, 5000)
    assert active_of(response) == {"0": [0, 1], "1": [0, 1]}
    assert (response.status, response.topology_description_required) == ([], False)
    assert (response.acceptable_recovery_lag, response.task_offset_interval_ms) == (10_000, 60_000)
    assert world.group.state_name == "Stable"


def test_its_records_are_kafkas_in_kafkas_order(world: StreamsWorld) -> None:
    world.join("m1")
    assert [type(record.key).__name__ for record in world.records] == [
        "StreamsGroupMemberMetadataKey",
        "StreamsGroupTopologyKey",
        "StreamsGroupMetadataKey",
        "StreamsGroupTargetAssignmentMemberKey",
        "StreamsGroupTargetAssignmentMetadataKey",
        "StreamsGroupCurrentMemberAssignmentKey",
    ]


def test_a_heartbeat_with_nothing_new_writes_nothing_and_returns_no_tasks(world: StreamsWorld) -> None:
    world.join("m1")
    written = len(world.records)
    response = world.beat("m1", 2)
    assert (response.member_epoch, response.active_tasks, len(world.records)) == (2, None, written)


def test_version_0_returns_the_lag_as_int32(world: StreamsWorld) -> None:
    response = world.join("m1", version=0)
    assert (response.acceptable_recovery_lag_legacy, response.acceptable_recovery_lag) == (10_000, -1)


def test_a_task_is_assigned_after_its_owner_has_revoked_it(world: StreamsWorld) -> None:
    world.join("m1")
    assert active_of(world.join("m2")) == {}
    assert world.member("m2").state is MemberState.UNRELEASED_TASKS
    kept = active_of(world.beat("m1", 2))
    assert world.member("m1").state is MemberState.UNREVOKED_TASKS
    assert revocation_key("g", "m1") in world.timers
    assert world.beat("m2", 3).active_tasks is None
    response = world.beat("m1", 2, owned=kept)
    assert (response.member_epoch, world.member("m1").state) == (3, MemberState.STABLE)
    assert revocation_key("g", "m1") not in world.timers
    taken = active_of(world.beat("m2", 3))
    both = sorted((part, index) for held in (kept, taken) for part, found in held.items() for index in found)
    assert both == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]
    assert world.group.state_name == "Stable"


def test_a_member_that_does_not_revoke_in_time_is_removed(world: StreamsWorld) -> None:
    world.join("m1")
    world.join("m2")
    world.beat("m1", 2)
    world.pass_time(10_000)
    assert list(world.group.members) == ["m2"]
    with pytest.raises(errors.UnknownMemberIdError):
        world.beat("m1", 2)


def test_a_silent_member_is_removed_after_its_session(world: StreamsWorld) -> None:
    world.join("m1")
    world.pass_time(44_999)
    assert list(world.group.members) == ["m1"]
    world.pass_time(1)
    assert (dict(world.group.members), world.group.state_name) == ({}, "Empty")


def test_missing_internal_topics_are_returned_for_creation(world: StreamsWorld) -> None:
    world.set_topics(**{"in": 3})
    reply = world.join_for_reply("m1")
    missing = {topic.name: (topic.partitions, topic.configs) for topic in reply.missing}
    assert missing == {"counts": (3, (("cleanup.policy", "compact"),)), "words": (3, ())}
    assert statuses_of(reply.response) == {
        StatusCode.MISSING_INTERNAL_TOPICS: "Internal topics are missing: counts, words"
    }
    assert (active_of(reply.response), world.group.state_name) == ({}, "NotReady")
    world.set_topics(**{"in": 3, "words": 3, "counts": 3})
    response = world.beat("m1", 2)
    assert active_of(response) == {"0": [0, 1, 2], "1": [0, 1, 2]}
    assert (response.status, world.group.validated_topology_epoch) == ([], 3)


def test_missing_source_topics_are_reported(world: StreamsWorld) -> None:
    world.set_topics()
    assert statuses_of(world.join("m1")) == {StatusCode.MISSING_SOURCE_TOPICS: "Source topics in are missing."}


def test_existing_topics_with_other_counts_are_reported(world: StreamsWorld) -> None:
    world.set_topics(**{"in": 2, "words": 2, "counts": 5})
    words = "Existing topic counts has different number of partitions: expected 2, found 5"
    assert statuses_of(world.join("m1")) == {StatusCode.INCORRECTLY_PARTITIONED_TOPICS: words}


def test_tasks_of_grown_topics_are_assigned(world: StreamsWorld) -> None:
    world.join("m1")
    world.set_topics(**{"in": 3, "words": 3, "counts": 3})
    assert active_of(world.beat("m1", 2)) == {"0": [0, 1, 2], "1": [0, 1, 2]}


def test_the_first_assignment_waits_for_the_initial_delay() -> None:
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms="3000")
    world.set_topics(**{"in": 2, "words": 2, "counts": 2})
    words = {StatusCode.ASSIGNMENT_DELAYED: "Assignment delayed due to the configured initial rebalance delay."}
    assert statuses_of(world.join("m1")) == words
    assert statuses_of(world.join("m2")) == words
    world.pass_time(3000)
    assert world.group.state_name == "Reconciling"
    epoch = world.member("m1").epoch
    assert active_of(world.beat("m1", epoch)) == {"0": [0], "1": [0]}
    assert active_of(world.beat("m2", world.member("m2").epoch)) == {"0": [1], "1": [1]}


def test_assignments_are_delayed_by_the_interval() -> None:
    world = StreamsWorld(group_streams_assignment_interval_ms="1000")
    world.set_topics(**{"in": 2, "words": 2, "counts": 2})
    world.join("m1")
    words = {StatusCode.ASSIGNMENT_DELAYED: "Assignment delayed due to the configured assignment interval."}
    assert statuses_of(world.join("m2")) == words
    world.pass_time(1000)
    assert world.beat("m2", world.member("m2").epoch).status == []


def test_standby_tasks_are_on_another_process() -> None:
    world = StreamsWorld(group_streams_num_standby_replicas="1")
    world.set_topics(**{"in": 2, "words": 2, "counts": 2})
    world.join("m1")
    world.join("m2")
    kept = active_of(world.beat("m1", 2))
    world.beat("m1", 2, owned=kept)
    response = world.beat("m2", 3)
    assert standby_of(response) == {"1": kept["1"]}
    assert world.member("m1").assigned.standby == {"1": frozenset(active_of(response)["1"])}
    assert world.group.last_configs == {"num.standby.replicas": "1"}


def test_a_shutdown_is_reported_to_all_members_until_the_group_is_empty(world: StreamsWorld) -> None:
    world.join("m1")
    world.join("m2")
    world.beat("m1", -1, shutdown_application=True)
    words = "Streams group member m1 encountered a fatal error and requested a shutdown for the entire application."
    assert statuses_of(world.beat("m2", 3)) == {StatusCode.SHUTDOWN_APPLICATION: words}
    world.beat("m2", -1)
    assert world.join("m3").status == []


def test_endpoints_are_returned_when_tasks_have_moved(world: StreamsWorld) -> None:
    response = world.join("m1", user_endpoint=message.Endpoint(host="here", port=80))
    (entry,) = response.partitions_by_user_endpoint
    assert (entry.user_endpoint.host, entry.user_endpoint.port) == ("here", 80)
    found = {(partitions.topic, tuple(partitions.partitions)) for partitions in entry.active_partitions}
    assert found == {("in", (0, 1)), ("words", (0, 1))}
    epoch = response.endpoint_information_epoch
    assert world.beat("m1", 2, endpoint_information_epoch=epoch).partitions_by_user_endpoint is None


def test_a_static_member_keeps_its_tasks_while_it_is_away(world: StreamsWorld) -> None:
    tasks = active_of(world.join("m1", instance_id="i"))
    assert world.beat("m1", -2, instance_id="i").member_epoch == -2
    assert world.active("m1") == tasks
    before = world.group.epoch
    response = world.join("m2", instance_id="i", process_id="of m1")
    assert (active_of(response), world.group.epoch) == (tasks, before)
    assert list(world.group.members) == ["m2"]
    assert session_key("g", "m1") not in world.timers


def test_an_instance_id_has_one_member(world: StreamsWorld) -> None:
    world.join("m1", instance_id="i")
    with pytest.raises(errors.UnreleasedInstanceIdError, match="is owned by m1 member"):
        world.join("m2", instance_id="i")
    with pytest.raises(errors.FencedInstanceIdError, match="was fenced by member m1"):
        world.beat("m2", 2, instance_id="i")
    with pytest.raises(errors.UnknownMemberIdError, match="Instance id j is unknown"):
        world.beat("m1", 2, instance_id="j")


def test_a_member_with_a_wrong_epoch_is_fenced(world: StreamsWorld) -> None:
    world.join("m1")
    with pytest.raises(errors.FencedMemberEpochError, match=r"greater member epoch \(3\)"):
        world.beat("m1", 3)
    with pytest.raises(errors.FencedMemberEpochError, match=r"smaller member epoch \(1\)"):
        world.beat("m1", 1)
    assert world.member("m1").previous_epoch == 0


def test_an_older_topology_is_reported_and_a_changed_one_is_rejected(world: StreamsWorld) -> None:
    world.join("m1")
    older = message.Topology(epoch=2, subtopologies=[])
    words = "The member's topology epoch 2 is behind the group's topology epoch 3."
    assert statuses_of(world.join("m2", topology=older)) == {StatusCode.STALE_TOPOLOGY: words}
    newer = message.Topology(epoch=4, subtopologies=TOPOLOGY.subtopologies)
    with pytest.raises(errors.InvalidRequestError, match=r"Topology updates are not supported yet\."):
        world.join("m3", topology=newer)


def test_a_full_group_accepts_no_new_member() -> None:
    world = StreamsWorld(group_streams_max_size="1")
    world.set_topics(**{"in": 2, "words": 2, "counts": 2})
    world.join("m1")
    with pytest.raises(errors.GroupMaxSizeReachedError, match="maximum capacity of 1 members"):
        world.join("m2")
    assert world.join("m1").member_epoch == 2


def test_tasks_that_the_topology_lacks_are_rejected(world: StreamsWorld) -> None:
    world.join("m1")
    with pytest.raises(errors.InvalidRequestError, match=r"Subtopology 7 does not exist in the topology\."):
        world.beat("m1", 2, owned={"7": [0]})
    with pytest.raises(errors.InvalidRequestError, match="Task 2 for subtopology 0 is invalid"):
        world.beat("m1", 2, owned={"0": [2]})


def test_a_task_offset_is_reported_once(world: StreamsWorld) -> None:
    world.join("m1")
    offset = message.TaskOffset(subtopology_id="1", partition=0, offset=7)
    world.beat("m1", 2, task_offsets=[offset])
    assert world.group.task_offsets["m1"].current == {"1": {0: 7}}
    with pytest.raises(errors.InvalidRequestError, match="duplicate entry for subtopology 1 and partition 0"):
        world.beat("m1", 2, task_offsets=[offset, offset])


def test_another_broker_continues_with_the_written_group(world: StreamsWorld) -> None:
    world.join("m1", user_endpoint=message.Endpoint(host="here", port=80))
    world.join("m2", instance_id="i", client_tags=[message.KeyValue(key="zone", value="a")])
    world.beat("m1", 2)
    before = world.written(world.group)
    world.move()
    assert world.group == before
    assert {session_key("g", "m1"), session_key("g", "m2"), revocation_key("g", "m1")} <= world.timers.keys()


def test_a_deleted_group_leaves_nothing(world: StreamsWorld) -> None:
    world.join("m1")
    world.beat("m1", -1)
    (result,) = world.submit(DeleteGroups(["g"]))
    assert (result.error_code, world.machine.state.group("g")) == (0, None)
    world.move()
    assert world.machine.state.group("g") is None


@pytest.mark.parametrize(
    ("request_fields", "words"),
    [
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": {"0": [1]}}, "ActiveTasks must be empty when"),
        ({"topology": None}, "Topology must be non-null when"),
        ({"instance_id": " "}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
    ],
)
def test_inconsistent_joins_are_rejected(world: StreamsWorld, request_fields: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.InvalidRequestError, match=words):
        world.join("m1", **request_fields)


@pytest.mark.parametrize(
    ("epoch", "request_fields", "words"),
    [
        (-3, {}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        (-2, {}, "InstanceId can't be null."),
        (2, {"topology": TOPOLOGY}, "Topology can only be provided when"),
        (2, {"active_tasks": []}, "If one task-type is non-null, all must be non-null."),
    ],
)
def test_inconsistent_heartbeats_are_rejected(
    world: StreamsWorld, epoch: int, request_fields: dict[str, Any], words: str
) -> None:
    world.join("m1")
    with pytest.raises(errors.InvalidRequestError, match=words):
        world.beat("m1", epoch, **request_fields)
