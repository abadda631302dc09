"""The coordinator of classic groups, and their administration, in raw frames: what is answered, and with which code.

Claims hold of Apache Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.classic_members import (
    GROUP_ID_NOT_FOUND,
    NO_ID,
    NON_EMPTY_GROUP,
    OK,
    Member,
    committed,
)
from tests.conformance.conftest import Topic
from tests.support.wire import Wire

pytestmark = pytest.mark.one_and_three


@pytest.mark.parametrize("version", range(7))
def test_every_version_finds_the_coordinator(wire: Wire, group: str, version: int) -> None:
    response = wire.call("FindCoordinator", version, key=group, key_type=0, coordinator_keys=[group])
    found = response.coordinators[0] if version >= 4 else response
    assert found.error_code == OK
    brokers = {broker.node_id: broker for broker in wire.call("Metadata", 12, topics=[]).brokers}
    assert (found.host, found.port) == (brokers[found.node_id].host, brokers[found.node_id].port)


def test_the_offsets_topic_is_internal_and_compacted(wire: Wire, group: str) -> None:
    (topic,) = wire.call("Metadata", 12, topics=[{"name": "__consumer_offsets", "topic_id": NO_ID}]).topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)
    requested = [{"resource_type": 2, "resource_name": "__consumer_offsets", "configuration_keys": None}]
    response = wire.call("DescribeConfigs", 4, resources=requested).results[0]
    configs = {entry.name: entry.value for entry in response.configs}
    assert (configs["cleanup.policy"], configs["compression.type"], configs["segment.bytes"]) == (
        "compact",
        "producer",
        "104857600",
    )


def test_groups_are_listed_by_state_and_type(join: Callable[..., Member], wire: Wire) -> None:
    member = join()
    member.join()
    member.sync_alone()

    def listed(**filters: list[str]) -> dict[str, tuple[str, str, str]]:
        response = wire.call("ListGroups", 5, **{"states_filter": [], "types_filter": [], **filters})
        assert response.error_code == OK
        return {one.group_id: (one.protocol_type, one.group_state, one.group_type) for one in response.groups}

    assert listed()[member.group] == ("connect", "Stable", "classic")
    assert member.group in listed(states_filter=["stable", "Dead"], types_filter=["CLASSIC"])
    assert member.group not in listed(states_filter=["Empty"])
    assert member.group not in listed(types_filter=["consumer"])
    for version in range(5):
        filters: dict[str, list[str]] = {"states_filter": []} if version >= 4 else {}
        groups = wire.call("ListGroups", version, **filters).groups
        assert member.group in {one.group_id for one in groups}


@pytest.mark.parametrize("version", range(7))
def test_every_version_describes(join: Callable[..., Member], wire: Wire, nobody: str, version: int) -> None:
    member = join(instance="i1")
    member.join()
    member.sync_alone()
    requested = {"include_authorized_operations": False} if version >= 3 else {}
    response = wire.call("DescribeGroups", version, groups=[member.group, nobody], **requested)
    described = {one.group_id: one for one in response.groups}
    known, unknown = described[member.group], described[nobody]
    assert (known.error_code, known.group_state, known.protocol_type, known.protocol_data) == (
        OK,
        "Stable",
        "connect",
        "range",
    )
    (one,) = known.members
    assert (one.member_id, one.client_id, one.client_host) == (member.id, "wire", "/127.0.0.1")
    assert (bytes(one.member_metadata), bytes(one.member_assignment)) == (b"meta", b"all")
    assert version < 4 or one.group_instance_id == "i1"
    assert (unknown.group_state, unknown.error_code) == ("Dead", GROUP_ID_NOT_FOUND if version >= 6 else OK)


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes_groups_without_members(
    join: Callable[..., Member], wire: Wire, topic: Topic, nobody: str, version: int
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    member.commit(topic.name)

    def deleted() -> dict[str, int]:
        response = wire.call("DeleteGroups", version, groups_names=[member.group, nobody, member.group])
        return {one.group_id: one.error_code for one in response.results}

    assert deleted() == {member.group: NON_EMPTY_GROUP, nobody: GROUP_ID_NOT_FOUND}
    member.leave()
    assert deleted() == {member.group: OK, nobody: GROUP_ID_NOT_FOUND}
    assert committed(wire, member.group, topic.name)[0] == -1
