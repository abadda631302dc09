"""Classic groups become consumer groups and back, while their members go on."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from pybroker.coordinator.group import errors, events
from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.settings import MigrationPolicy
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_protocol import encode_framed
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.simulation.consumer_world import SETTINGS, World
from tests.simulation.consumers import ClassicConsumer, Consumer

A = b"a" * 16
METADATA = encode_framed(ConsumerProtocolSubscription(topics=["a"]), 1)


@pytest.fixture
def world() -> World:
    """A coordinator, and the topic a with four partitions."""
    world = World(Random(0))
    world.topics = Topics({"a": TopicInfo(A, 4)}, {A: "a"}, 0)
    return world


def allow(world: World, policy: MigrationPolicy) -> None:
    """Set `group.consumer.migration.policy`."""
    consumer = msgspec.structs.replace(SETTINGS.consumer, migration_policy=policy)
    world.machine.state.settings = msgspec.structs.replace(SETTINGS, consumer=consumer)


def classic_member(world: World) -> ClassicConsumer:
    """Bring a classic group of one member to rest."""
    member = ClassicConsumer(world, cooperative=True)
    for _ in range(4):
        member.step()
        world.pass_time(1)
    assert world.group.state is ClassicState.STABLE
    return member


def stable_group(world: World, assignment: bytes, *, protocol_type: str = "consumer") -> None:
    """Make a stable classic group whose one member has been given those bytes."""
    responses: list[Any] = []
    protocols = [JoinGroupRequestProtocol(name="p", metadata=METADATA)]
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type=protocol_type,
        protocols=protocols,
    )
    client = events.Client("c", "/h")
    world.submit(events.JoinGroup(request, 3, client, "1"), responses.append)
    world.pass_time(1)
    (joined,) = responses
    given = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)]
    world.submit(
        events.SyncGroup(
            SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id, assignments=given)
        ),
        responses.append,
    )


def refusal(world: World) -> str | None:
    """Have a member of KIP-848 come, and return why it may not."""
    consumer = Consumer(world, "new")
    with pytest.raises(errors.GroupIdNotFoundError) as raised:
        world.submit(consumer._request(0))
    return raised.value.message


def test_the_generation_becomes_the_epoch_and_the_assignment_what_a_member_has(world: World) -> None:
    old = classic_member(world)
    Consumer(world, "new").step()
    group = world.group
    assert isinstance(group, ConsumerGroup)
    assert (group.epoch, group.assignment_epoch) == (2, 2)
    assert group.members[old.member_id].assigned == {A: dict.fromkeys(range(4), 1)}
    assert group.members[old.member_id].classic is not None
    assert group.members["new"].assigned == {}
    assert group.targets == {old.member_id: {A: frozenset({0, 1})}, "new": {A: frozenset({2, 3})}}


def test_a_classic_member_has_to_join_again_and_gives_its_share(world: World) -> None:
    old, new = classic_member(world), Consumer(world, "new")
    for _ in range(8):
        new.step()
        old.step()
        world.pass_time(10)
    assert (old.has, new.has) == ({("a", 0), ("a", 1)}, {("a", 2), ("a", 3)})


def test_a_classic_member_that_does_not_join_again_is_fenced(world: World) -> None:
    old, new = classic_member(world), Consumer(world, "new")
    new.step()
    old._heartbeat()
    assert old.needs_join
    for _ in range(4):
        world.pass_time(10_000)
        new.step()
    assert set(world.group.members) == {"new"}
    assert new.is_set == {("a", partition) for partition in range(4)}


def test_the_last_member_of_the_consumer_protocol_leaves_a_classic_group_behind(world: World) -> None:
    old, new = classic_member(world), Consumer(world, "new")
    new.step()
    world.submit(new._request(-1))
    group = world.group
    assert isinstance(group, ClassicGroup)
    assert (group.state, set(group.members)) == (ClassicState.PREPARING_REBALANCE, {old.member_id})
    assert group.generation == 2


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.DISABLED])
def test_without_leave_to_downgrade_it_stays_a_consumer_group(world: World, policy: MigrationPolicy) -> None:
    classic_member(world)
    new = Consumer(world, "new")
    new.step()
    allow(world, policy)
    world.submit(new._request(-1))
    assert isinstance(world.group, ConsumerGroup)


@pytest.mark.parametrize("policy", [MigrationPolicy.DOWNGRADE, MigrationPolicy.DISABLED])
def test_without_leave_to_upgrade_nobody_of_the_consumer_protocol_comes_in(
    world: World, policy: MigrationPolicy
) -> None:
    classic_member(world)
    allow(world, policy)
    fault = "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    assert refusal(world) == fault


def test_a_group_of_another_kind_is_not_upgraded(world: World) -> None:
    stable_group(world, b"", protocol_type="connect")
    assert refusal(world) == (
        "Cannot upgrade classic group g to consumer group because the group does not use the consumer embedded "
        "protocol."
    )


def test_an_assignor_with_data_of_its_own_is_not_upgraded(world: World) -> None:
    assigned = [TopicPartition(topic="a", partitions=[0])]
    custom = ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=b"x")
    stable_group(world, encode_framed(custom, 1))
    assert refusal(world) == (
        "Cannot upgrade classic group g to consumer group because an unsupported custom assignor is in use. Please "
        "refer to the documentation or switch to a default assignor before re-attempting the upgrade."
    )


def test_an_assignment_that_makes_no_sense_is_not_upgraded(world: World) -> None:
    stable_group(world, b"\0")
    assert refusal(world) == (
        "Cannot upgrade classic group g to consumer group because the embedded consumer protocol is malformed."
    )


def test_an_empty_classic_group_makes_room_whatever_the_policy(world: World) -> None:
    old = classic_member(world)
    old.leave()
    allow(world, MigrationPolicy.DISABLED)
    Consumer(world, "new").step()
    assert isinstance(world.group, ConsumerGroup)


def test_an_empty_consumer_group_makes_room_whatever_the_policy(world: World) -> None:
    new = Consumer(world, "new")
    new.step()
    new.leave()
    allow(world, MigrationPolicy.DISABLED)
    classic_member(world)
    assert isinstance(world.group, ClassicGroup)


def test_members_who_wait_in_a_rebalance_have_to_join_again(world: World) -> None:
    first, second = classic_member(world), ClassicConsumer(world, cooperative=True)
    second.step()
    second.step()
    assert second.waits
    Consumer(world, "new").step()
    assert not second.waits
    assert second.needs_join
    assert {first.member_id, second.member_id} <= set(world.group.members)


def test_a_member_that_has_not_received_its_new_share_yet_has_its_old_one(world: World) -> None:
    first, second, third = classic_member(world), *(ClassicConsumer(world, cooperative=True) for _ in range(2))
    for _ in range(8):
        first.step()
        second.step()
    share = set(second.has)
    assert len(share) == 2
    for member in (third, third, first, first, second, second):
        member.step()
    assert first.joined.leader == first.member_id
    first.step()  # It assigns; the second one has not asked yet, and reads on.
    Consumer(world, "new").step()
    assert world.group.members[second.member_id].has == {A: {partition for _, partition in share}}


def test_a_disabled_migration_keeps_classic_members_out_of_a_consumer_group(world: World) -> None:
    Consumer(world, "new").step()
    allow(world, MigrationPolicy.DISABLED)
    request = JoinGroupRequest(group_id="g", protocol_type="consumer", protocols=[])
    with pytest.raises(errors.InconsistentGroupProtocolError, match="the group migration is disabled"):
        world.submit(events.JoinGroup(request, 9, events.Client("c", "/h"), "1"))


def test_a_protocol_that_not_all_classic_members_know_is_refused(world: World) -> None:
    Consumer(world, "new").step()
    ClassicConsumer(world, cooperative=True)._join()
    member = ClassicConsumer(world, cooperative=True)
    member.step()
    member.step()
    strange = [JoinGroupRequestProtocol(name="strange", metadata=METADATA)]
    request = JoinGroupRequest(group_id="g", protocol_type="consumer", protocols=strange)
    with pytest.raises(errors.InconsistentGroupProtocolError, match="protocols are not supported"):
        world.submit(events.JoinGroup(request, 9, events.Client("c", "/h"), "1"))


def test_a_static_member_that_comes_back_with_the_classic_protocol_downgrades_a_settled_group(world: World) -> None:
    new = Consumer(world, "new", "i")
    new.step()
    request = JoinGroupRequest(
        group_id="g",
        group_instance_id="i",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
    )
    reply = world.submit(events.JoinGroup(request, 9, events.Client("c", "/h"), "back"))
    assert reply.error_code == ErrorCode.NONE
    assert isinstance(world.group, ClassicGroup)
    assert set(world.group.members) == {reply.member_id}
