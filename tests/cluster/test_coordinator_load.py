"""A partition of offsets moves to another coordinator, by its leader's move and by its death: nothing goes back.

How long the new coordinator takes until it answers is printed (`pytest -rP`). `PYBROKER_COORDINATOR_OFFSETS=1000000`
gives the partition a million offsets, and holds the time of a move against `_LOADED_WITHIN_S`, for a quiet machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Cluster
from tests.conformance.classic_members import ILLEGAL_GENERATION, OK, Member
from tests.conformance.conftest import Server
from tests.support.conditions import wait_until
from tests.support.wire import Wire

pytestmark = pytest.mark.process

OFFSETS_TOPIC, TOPIC = "__consumer_offsets", "read"
PARTITIONS = 1000
"""Partitions of the topic that is read: so many offsets has each group."""
GROUPS = int(os.environ.get("PYBROKER_COORDINATOR_OFFSETS", "20000")) // PARTITIONS
IS_MEASURED = "PYBROKER_COORDINATOR_OFFSETS" in os.environ
_LOADED_WITHIN_S = 3.0
_WAIT_S = 60.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    properties = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "3"}
    with Cluster(brokers=3, properties=properties) as running, Admin(running.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
        admin.wait_for_leaders(TOPIC)
        yield running


def group_name(number: int) -> str:
    return f"readers-{number}"


def offset_of(group: int, partition: int) -> int:
    return group * PARTITIONS + partition


def coordinator(cluster: Cluster) -> int:
    """The broker that coordinates every group, once there is one."""
    found = -1

    def is_found() -> bool:
        nonlocal found
        with Wire(cluster.address(cluster.running[0])) as wire:
            (response,) = wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=[group_name(0)]).coordinators
        found = response.node_id
        return bool(response.error_code == OK)

    wait_until(is_found, within=_WAIT_S, what="the coordinator is there")
    return found


def commit_all(wire: Wire) -> None:
    """An offset of every partition for every group, as programs without a group membership commit."""
    for group in range(GROUPS):
        partitions = [
            {"partition_index": index, "committed_offset": offset_of(group, index), "committed_metadata": ""}
            for index in range(PARTITIONS)
        ]
        response = wire.call(
            "OffsetCommit",
            8,
            group_id=group_name(group),
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[{"name": TOPIC, "partitions": partitions}],
        )
        assert {part.error_code for part in response.topics[0].partitions} == {OK}


def check_all(wire: Wire) -> None:
    """Every offset is the one that was committed."""
    for group in range(GROUPS):
        wanted = {"group_id": group_name(group), "topics": [{"name": TOPIC, "partition_indexes": range(PARTITIONS)}]}
        (response,) = wire.call("OffsetFetch", 8, groups=[wanted], require_stable=True).groups
        assert response.error_code == OK
        found = {part.partition_index: part.committed_offset for part in response.topics[0].partitions}
        assert found == {index: offset_of(group, index) for index in range(PARTITIONS)}


def seconds_until_it_responds(wire: Wire) -> float:
    """How long a coordinator takes from now until it has loaded: until then it refuses to say offsets."""
    begun = time.monotonic()
    wanted = [{"group_id": group_name(0), "topics": None}]
    wait_until(
        lambda: wire.call("OffsetFetch", 8, groups=wanted, require_stable=True).groups[0].error_code == OK,
        within=_WAIT_S,
        what="the coordinator has loaded",
    )
    return time.monotonic() - begun


@contextmanager
def known_at(cluster: Cluster, broker: int, member: Member) -> Iterator[Wire]:
    """A connection to a broker by which it is asked whether it knows a member, and all that was committed."""
    with Wire(cluster.address(broker), timeout=_WAIT_S) as wire:
        member.wire = wire
        yield wire
        # A coordinator that loads answers a heartbeat, of whomever; one that has loaded knows generations.
        assert (member.beat(), member.beat(generation=member.generation + 1)) == (OK, ILLEGAL_GENERATION)
        check_all(wire)


def test_members_and_offsets_outlive_a_move_and_a_death_of_their_coordinator(cluster: Cluster) -> None:
    first = coordinator(cluster)
    server = Server(cluster.address(first), cluster.directory)
    member = Member(server, group_name(0), session_ms=300_000)
    with member.wire as wire:
        seconds_until_it_responds(wire)
        commit_all(wire)
        member.join()
        member.sync_alone()
    second, third = (broker for broker in cluster.brokers if broker != first)
    cluster.wait_in_sync(OFFSETS_TOPIC)

    cluster.move_leader(OFFSETS_TOPIC, 0, second)
    with known_at(cluster, second, member) as wire:
        moved_s = seconds_until_it_responds(wire)

    cluster.wait_in_sync(OFFSETS_TOPIC)
    cluster.kill(second)
    cluster.wait_for_partition(OFFSETS_TOPIC, 0, lambda it: it.leader not in (-1, second))
    heir = cluster.leader(OFFSETS_TOPIC)
    assert heir in (first, third)
    with known_at(cluster, heir, member) as wire:
        died_s = seconds_until_it_responds(wire)
    print(f"{GROUPS * PARTITIONS} offsets: {moved_s:.2f} s after a move, {died_s:.2f} s after a death")
    if IS_MEASURED:
        assert max(moved_s, died_s) <= _LOADED_WITHIN_S
