"""Which commits and fetches of offsets a streams group accepts, and which groups change their type."""

from __future__ import annotations

import pytest

from pybroker.coordinator.group import errors
from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.events import (
    Client,
    CommitOffsets,
    ConsumerHeartbeat,
    FetchOffsets,
    JoinGroup,
    ListGroups,
)
from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from tests.support.streams_groups import StreamsWorld

CLIENT = Client("c", "/h")


@pytest.fixture
def world() -> StreamsWorld:
    """A group with one member in epoch 2."""
    world = StreamsWorld()
    world.set_topics(**{"in": 2, "words": 2, "counts": 2})
    world.join("m1")
    return world


def commit(world: StreamsWorld, member_id: str, epoch: int, *, version: int = 9, topic: str = "in") -> None:
    """Commit an offset of partition 0."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    world.submit(CommitOffsets(request, version))


def test_a_member_commits_in_its_epoch(world: StreamsWorld) -> None:
    commit(world, "m1", 2)
    assert world.machine.state.offsets("g")["in", 0].offset == 5


def test_a_commit_in_an_older_epoch_is_accepted_for_tasks_that_the_member_had_then(world: StreamsWorld) -> None:
    world.join("m2")
    kept = world.beat("m1", 2)
    held = {task.subtopology_id: task.partitions for task in kept.active_tasks}
    world.beat("m1", 2, owned=held)
    assert world.member("m1").epoch == 3
    if 0 in held.get("0", []):
        commit(world, "m1", 2)
    with pytest.raises(errors.StaleMemberEpochError, match=r"Topic other is not in the topology\."):
        commit(world, "m1", 2, topic="other")
    with pytest.raises(errors.StaleMemberEpochError, match="is older than assignment epoch 2"):
        commit(world, "m1", 1)


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "error"),
    [
        ("m1", 3, 9, errors.StaleMemberEpochError),
        ("m2", 2, 9, errors.UnknownMemberIdError),
        ("m1", 2, 8, errors.UnsupportedVersionError),
        ("", -1, 9, errors.UnknownMemberIdError),
    ],
)
def test_other_commits_are_rejected(
    world: StreamsWorld, member_id: str, epoch: int, version: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        commit(world, member_id, epoch, version=version)


def test_offsets_are_fetched_in_the_members_epoch_or_without_a_member(world: StreamsWorld) -> None:
    world.submit(FetchOffsets(OffsetFetchRequestGroup(group_id="g", member_id=None, member_epoch=-1, topics=None)))
    world.submit(FetchOffsets(OffsetFetchRequestGroup(group_id="g", member_id="m1", member_epoch=2, topics=None)))
    with pytest.raises(errors.StaleMemberEpochError, match="does not match the expected member epoch 2"):
        world.submit(FetchOffsets(OffsetFetchRequestGroup(group_id="g", member_id="m1", member_epoch=1, topics=None)))


def test_it_is_listed_by_type_and_state(world: StreamsWorld) -> None:
    (listed,) = world.submit(ListGroups(["stable"], ["streams"]))
    assert (listed.group_type, listed.protocol_type, listed.group_state) == ("streams", "streams", "Stable")
    assert world.submit(ListGroups((), ["consumer"])) == []
    world.set_topics()
    world.beat("m1", 2)
    (listed,) = world.submit(ListGroups(["notready"]))
    assert listed.group_state == "NotReady"


def _join_classic(world: StreamsWorld) -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    world.submit(JoinGroup(request, 3, CLIENT, "fresh"))


def test_only_an_empty_group_becomes_a_classic_one_and_keeps_its_offsets(world: StreamsWorld) -> None:
    commit(world, "m1", 2)
    with pytest.raises(errors.InconsistentGroupProtocolError):
        _join_classic(world)
    world.beat("m1", -1)
    _join_classic(world)
    assert isinstance(world.machine.state.group("g"), ClassicGroup)
    assert world.machine.state.offsets("g")["in", 0].offset == 5


def test_an_empty_classic_group_becomes_a_streams_group_and_keeps_its_offsets() -> None:
    world = StreamsWorld()
    world.set_topics(**{"in": 2, "words": 2, "counts": 2})
    commit(world, "", -1)
    assert isinstance(world.machine.state.group("g"), ClassicGroup)
    world.join("m1")
    assert (world.group.type_name, world.machine.state.offsets("g")["in", 0].offset) == ("streams", 5)
    world.move()
    assert world.group.type_name == "streams"


def test_a_group_of_another_type_is_not_found(world: StreamsWorld) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="c", rebalance_timeout_ms=1, subscribed_topic_names=[], topic_partitions=[]
    )
    with pytest.raises(errors.GroupIdNotFoundError, match="is not a consumer group"):
        world.submit(ConsumerHeartbeat(request, 1, CLIENT, "fresh"))
    other = StreamsWorld()
    other.submit(ConsumerHeartbeat(request, 1, CLIENT, "fresh"))
    with pytest.raises(errors.GroupIdNotFoundError, match="is not a streams group"):
        other.join("m1")
    with pytest.raises(errors.GroupIdNotFoundError, match="Streams group g not found"):
        StreamsWorld().beat("m1", 1)


def test_offsets_of_topics_that_members_read_are_not_deleted(world: StreamsWorld) -> None:
    assert world.group.is_subscribed_to("words")
    assert not world.group.is_subscribed_to("counts")
    world.beat("m1", -1)
    assert not world.group.is_subscribed_to("words")
