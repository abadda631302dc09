"""Groups of KIP-848 and of both protocols under random schedules: one owner a partition, epochs rise, all settle."""

from __future__ import annotations

import os
from random import Random

import pytest

from pybroker.coordinator.group.log import decode_records, encode_records
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.modern.group import ConsumerGroup, ConsumerGroupState
from pybroker.coordinator.group.modern.subscription import subscribed_names
from pybroker.coordinator.group.records import GroupRecord
from tests.simulation.consumer_world import GROUP, SETTINGS, ClassicConsumer, Consumer, World, check_group

SEEDS = int(os.environ.get("PYBROKER_SIMULATED_SEEDS", "400"))


def check_schedule(seed: int, *, mixed: bool) -> None:
    random = Random(seed)
    world = World(random)
    clients: list[Consumer | ClassicConsumer] = []
    for event in range(random.randint(20, 120)):
        before = world.group
        choice = random.random()
        if choice < 0.12 and len(clients) < 12:
            clients.append(new_client(world, event, mixed=mixed))
        elif choice < 0.16 and clients:
            clients.pop(random.randrange(len(clients)))  # It crashes: nothing more is heard of it.
        elif choice < 0.20 and clients:
            client = random.choice(clients)
            client.leave()
            if random.random() < 0.5:
                clients.remove(client)
        elif choice < 0.25 and clients:
            random.choice(clients).change_mind()
        elif choice < 0.27:
            world.add_topic(random.choice(["a", "b", "c1", "c2"]), random.randint(1, 8))
        elif choice < 0.35:
            world.pass_time(random.choice([500, 5000, 20_000, 50_000]))
        elif clients:
            client = random.choice(clients)
            client.step(slow=random.random() < 0.2, loses_answer=random.random() < 0.1)
            world.pass_time(random.choice([0, 10, 1100]))
        check_group(world.group, before)
        check_owners(world, clients)
    settle(world, clients)
    check_replay(world)


def new_client(world: World, number: int, *, mixed: bool) -> Consumer | ClassicConsumer:
    random = world.random
    if mixed and random.random() < 0.6:
        return ClassicConsumer(world, cooperative=random.random() < 0.5)
    instance_id = random.choice(["i1", "i2"]) if random.random() < 0.2 else None
    return Consumer(world, f"m{random.getrandbits(40):010x}-{number}", instance_id)


def check_owners(world: World, clients: list[Consumer | ClassicConsumer]) -> None:
    """No two clients read a partition, but for those that the coordinator has fenced and that do not know it yet."""
    group = world.group
    if not isinstance(group, ConsumerGroup):
        return
    owners: dict[tuple[str, int], str] = {}
    for client in clients:
        member = group.members.get(client.member_id)
        if member is None or (
            isinstance(client, Consumer) and client.epoch not in (member.epoch, member.previous_epoch)
        ):
            continue
        if isinstance(client, ClassicConsumer) and client.member_id in world.fenced:
            continue
        for partition in client.has:
            assert owners.setdefault(partition, client.member_id) == client.member_id


def settle(world: World, clients: list[Consumer | ClassicConsumer]) -> None:
    """Let everybody heartbeat in peace until nothing changes: everybody has what it is to have."""
    static: set[str] = set()
    for client in list(clients):
        if isinstance(client, Consumer) and client.instance_id is not None:
            if client.instance_id in static:
                clients.remove(client)  # Two clients that claim one name fence each other for ever.
            static.add(client.instance_id)
    world.pass_time(60_000)
    for _ in range(60):
        for client in clients:
            client.step()
        world.pass_time(2000)
    group = world.group
    if not clients:
        assert group is None or group.is_empty
        return
    if any(isinstance(client, Consumer) for client in clients):
        assert isinstance(group, ConsumerGroup)
        assert group.state is ConsumerGroupState.STABLE, group
        assert group.assignment_epoch == group.epoch
        for member in group.members.values():
            assert {t: frozenset(p) for t, p in member.assigned.items()} == group.targets[member.member_id]
        wanted = {
            name for member in group.members.values() for name in subscribed_names(member, group.regexes)
        } & world.topics.by_name.keys()
    else:
        assert group.state_name == "Stable", group
        wanted = {name for client in clients for name in client.names or []}
    assert {client.member_id for client in clients} == set(group.members)
    read = sorted(partition for client in clients for partition in client.has)
    assert read == sorted((name, p) for name in wanted for p in range(world.topics.by_name[name].partitions))


def check_replay(world: World) -> None:
    """Replaying the records, through bytes, on a fresh machine gives the same group."""
    fresh = GroupMachine(SETTINGS, lambda: world.topics)
    batches = encode_records(world.records, world.now, codec=0, max_batch_bytes=1 << 20) if world.records else b""
    while batches:
        chunk = decode_records(batches)
        for key, value in chunk.records:
            fresh.apply(GroupRecord(key, value))
        batches = batches[chunk.size :]
    group = world.group
    if isinstance(group, ConsumerGroup):
        assert fresh.state.group(GROUP) == group


@pytest.mark.parametrize("block", range(10))
def test_members_of_the_consumer_protocol_settle_under_any_schedule(block: int) -> None:
    for seed in range(block, SEEDS, 10):
        check_schedule(seed, mixed=False)


@pytest.mark.parametrize("block", range(10))
def test_members_of_both_protocols_settle_under_any_schedule(block: int) -> None:
    for seed in range(block, SEEDS, 10):
        check_schedule(seed, mixed=True)
