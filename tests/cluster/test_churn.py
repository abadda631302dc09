"""Clients, groups and topics that come and go leave nothing behind: what is kept after many rounds is what a few left.

Counted are the control plane's objects and the entries of its containers, by an embedded broker, not bytes: `make soak`
watches the resident memory of a broker process for ten minutes.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator

import pytest

from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, produce, produced

WARM_UP, ROUNDS = 12, 40
TOPICS = 3
# What may come and go with the moment of looking: a task that is ending, a page of a checkpoint.
SLACK = ROUNDS // 2


def round_of(servers: str, number: int) -> None:
    """A client that comes, makes topics, writes, reads, is a group's only member, takes all away and goes."""
    group, topics = f"group-{number}", [f"topic-{number}-{index}" for index in range(TOPICS)]
    with Wire(servers, client_id=f"client-{number}") as wire:
        wanted = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in topics]
        made = wire.call("CreateTopics", 7, topics=wanted, timeout_ms=20_000)
        assert {topic.error_code for topic in made.topics} == {0}
        for name in topics:
            assert produced(wire.query(produce(name, batch_of(b"a", b"b")))).error_code == 0
            wire.query(fetch(name))
        member_id, generation = join(wire, group)
        partition = {
            "partition_index": 0,
            "committed_offset": 1,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        committed = wire.call(
            "OffsetCommit",
            8,
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=None,
            topics=[{"name": name, "partitions": [partition]} for name in topics],
        )
        assert {part.error_code for topic in committed.topics for part in topic.partitions} == {0}
        wire.call("LeaveGroup", 3, group_id=group, members=[{"member_id": member_id, "group_instance_id": None}])
        assert wire.call("DeleteGroups", 2, groups_names=[group]).results[0].error_code == 0
        deleted = wire.call("DeleteTopics", 5, topic_names=topics, timeout_ms=20_000)
        assert {topic.error_code for topic in deleted.responses} == {0}


def join(wire: Wire, group: str) -> tuple[str, int]:
    """Become the group's only member; returns its id and the generation."""
    member_id = ""
    found = wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=[group]).coordinators[0]
    assert found.error_code == 0
    for _ in range(2):
        joined = wire.call(
            "JoinGroup",
            5,
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=300_000,
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )
        member_id = joined.member_id
    assert joined.error_code == 0
    synced = wire.call(
        "SyncGroup",
        3,
        group_id=group,
        generation_id=joined.generation_id,
        member_id=member_id,
        group_instance_id=None,
        assignments=[{"member_id": member_id, "assignment": b""}],
    )
    assert synced.error_code == 0
    return member_id, joined.generation_id


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(offsets_topic_num_partitions=1) as running:
        yield running


def kept() -> tuple[Counter[str], dict[int, tuple[str, int]], int]:
    """The broker's objects by type, the containers with their sizes by identity, and the open descriptors."""
    for cache in [one for one in gc.get_objects() if type(one).__name__ == "_lru_cache_wrapper"]:
        if cache.__module__.startswith("pybroker"):
            cache.cache_clear()  # A bounded memory is no leak.
    gc.collect()
    types: Counter[str] = Counter()
    containers = {}
    for one in gc.get_objects():
        kind = type(one)
        if str(kind).startswith("<class 'pybroker."):
            types[kind.__qualname__] += 1
        elif kind in (dict, list, set):
            # Types alone: other libraries' objects need not have a text at any moment.
            held = ", ".join(type(item).__qualname__ for item in list(one)[-2:])
            containers[id(one)] = (f"{kind.__name__} of {held}", len(one))
    return types, containers, len(os.listdir("/proc/self/fd"))


def test_what_comes_and_goes_leaves_nothing_in_memory(broker: Broker) -> None:
    for number in range(WARM_UP):
        round_of(broker.bootstrap_servers, number)
    types, containers, descriptors = kept()
    for number in range(WARM_UP, WARM_UP + ROUNDS):
        round_of(broker.bootstrap_servers, number)

    def grown() -> list[tuple[str, int]]:
        now_types, now_containers, now_descriptors = kept()
        more = [(name, count - types[name]) for name, count in now_types.items()]
        for identity, (what, size) in now_containers.items():
            if identity in containers:
                more.append((what, size - containers[identity][1]))
        more.append(("descriptors", now_descriptors - descriptors))
        return [(what, by) for what, by in more if by >= SLACK]

    wait_until(lambda: not grown(), within=60, what=lambda: f"unchanged, but grown: {grown()}")
