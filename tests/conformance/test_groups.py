"""Groups of the classic protocol and committed offsets, in raw frames: what is answered, and with which code.

Claims hold of Apache Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`).
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.conformance.conftest import Server, Topic
from tests.support.conditions import wait_until
from tests.support.wire import Wire

OK = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_METADATA_TOO_LARGE = 12
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
MEMBER_ID_REQUIRED = 79
FENCED_INSTANCE_ID = 82
GROUP_SUBSCRIBED_TO_TOPIC = 86
UNKNOWN_TOPIC_ID = 100

NO_ID = uuid.UUID(int=0)
CONSUMER_METADATA = b"\0\0\0\0\0\1\0\5topic\xff\xff\xff\xff"
"""A subscription of version 0 to `topic`."""

_numbers = itertools.count(1)


@pytest.fixture
def group(wire: Wire) -> str:
    """A group's id that no other test uses; its coordinator is there."""
    name = f"group-{next(_numbers)}"

    def found() -> bool:
        answer = wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=[name]).coordinators[0]
        return (
            answer.error_code == OK
            and wire.call("Heartbeat", 0, group_id=name, generation_id=0, member_id="x").error_code == UNKNOWN_MEMBER_ID
        )

    wait_until(found, within=60, what="the coordinator is there")
    return name


@dataclass
class Member:
    """A member with a connection of its own, as its JoinGroup may wait."""

    server: Server
    group: str
    id: str = ""
    generation: int = -1
    instance: str | None = None
    protocols: dict[str, bytes] = field(default_factory=lambda: {"range": b"meta"})
    kind: str = "connect"
    session_ms: int = 10_000
    rebalance_ms: int = 30_000

    def __post_init__(self) -> None:
        self.wire = Wire(self.server.bootstrap_servers)
        self._asked: Any = None

    def begin_join(self, version: int = 9) -> None:
        self._asked = self.join_request(version)
        self._correlation = self.wire.send(self._asked)

    def end_join(self) -> Any:
        answer = self.wire.receive(self._asked, self._correlation)
        if answer.error_code == OK:
            self.id, self.generation = answer.member_id, answer.generation_id
        return answer

    def join(self, version: int = 9) -> Any:
        self.begin_join(version)
        answer = self.end_join()
        if answer.error_code == MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            self.begin_join(version)
            answer = self.end_join()
        return answer

    def join_request(self, version: int) -> Any:
        from tests.support.wire import request

        known = {"group_instance_id": self.instance} if version >= 5 else {}
        return request(
            "JoinGroup",
            version,
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            **({"rebalance_timeout_ms": self.rebalance_ms} if version >= 1 else {}),
            member_id=self.id,
            **known,
            protocol_type=self.kind,
            protocols=[{"name": name, "metadata": metadata} for name, metadata in self.protocols.items()],
        )

    def sync(self, version: int = 5, **assignments: bytes) -> Any:
        return self.wire.ask(self.sync_request(version, **assignments))

    def sync_request(self, version: int = 5, **assignments: bytes) -> Any:
        from tests.support.wire import request

        known = {"group_instance_id": self.instance} if version >= 3 else {}
        if version >= 5:
            known |= {"protocol_type": self.kind, "protocol_name": next(iter(self.protocols))}
        return request(
            "SyncGroup",
            version,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            **known,
            assignments=[{"member_id": name, "assignment": share} for name, share in assignments.items()],
        )

    def sync_alone(self, version: int = 5) -> Any:
        return self.sync(version, **{self.id: b"all"})

    def beat(self, version: int = 4, *, generation: int | None = None) -> int:
        known = {"group_instance_id": self.instance} if version >= 3 else {}
        generation = self.generation if generation is None else generation
        answer = self.wire.call(
            "Heartbeat", version, group_id=self.group, generation_id=generation, member_id=self.id, **known
        )
        return int(answer.error_code)

    def leave(self, version: int = 5) -> Any:
        if version < 3:
            return self.wire.call("LeaveGroup", version, group_id=self.group, member_id=self.id)
        who = {"member_id": self.id, "group_instance_id": self.instance}
        return self.wire.call("LeaveGroup", version, group_id=self.group, members=[who])

    def commit(self, topic: str, offset: int = 5, *, generation: int | None = None, version: int = 8) -> int:
        generation = self.generation if generation is None else generation
        return commit(self.wire, self.group, topic, offset, member=self.id, generation=generation, version=version)


@pytest.fixture
def join(server: Server, group: str) -> Iterator[Callable[..., Member]]:
    """Makes members of the test's group: `join(instance="i")`."""
    made: list[Member] = []

    def new_member(**settings: Any) -> Member:
        made.append(Member(server, group, **settings))
        return made[-1]

    yield new_member
    for member in made:
        member.wire.socket.close()


def commit(
    wire: Wire,
    group: str,
    topic: str,
    offset: int = 5,
    *,
    partition: int = 0,
    member: str = "",
    generation: int = -1,
    version: int = 8,
    metadata: str = "",
    topic_id: Any = NO_ID,
) -> int:
    """Commit one offset; the partition's error."""
    named = {"topic_id": topic_id} if version >= 10 else {"name": topic}
    kept = {"committed_leader_epoch": 3} if version >= 6 else {}
    answer = wire.call(
        "OffsetCommit",
        version,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        **({"retention_time_ms": -1} if version <= 4 else {}),
        topics=[
            {
                **named,
                "partitions": [
                    {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata, **kept}
                ],
            }
        ],
    )
    return int(answer.topics[0].partitions[0].error_code)


def committed(wire: Wire, group: str, topic: str, *, version: int = 8, topic_id: Any = NO_ID) -> tuple[int, str, int]:
    """Offset, metadata and error of partition 0."""
    if version >= 8:
        named = {"topic_id": topic_id} if version >= 10 else {"name": topic}
        wanted: dict[str, Any] = {"group_id": group, "topics": [{**named, "partition_indexes": [0]}]}
        if version >= 9:
            wanted |= {"member_id": None, "member_epoch": -1}
        answer = wire.call("OffsetFetch", version, groups=[wanted], require_stable=False).groups[0]
        assert answer.error_code == OK
    else:
        stable = {"require_stable": False} if version >= 7 else {}
        answer = wire.call(
            "OffsetFetch", version, group_id=group, topics=[{"name": topic, "partition_indexes": [0]}], **stable
        )
    part = answer.topics[0].partitions[0]
    return part.committed_offset, part.metadata, part.error_code


@pytest.mark.parametrize("version", range(7))
def test_every_version_finds_the_coordinator(wire: Wire, group: str, version: int) -> None:
    answer = wire.call("FindCoordinator", version, key=group, key_type=0, coordinator_keys=[group])
    found = answer.coordinators[0] if version >= 4 else answer
    assert found.error_code == OK
    brokers = {broker.node_id: broker for broker in wire.call("Metadata", 12, topics=[]).brokers}
    assert (found.host, found.port) == (brokers[found.node_id].host, brokers[found.node_id].port)


def test_the_offsets_topic_is_internal_and_compacted(wire: Wire, group: str) -> None:
    (topic,) = wire.call("Metadata", 12, topics=[{"name": "__consumer_offsets", "topic_id": NO_ID}]).topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)
    asked = [{"resource_type": 2, "resource_name": "__consumer_offsets", "configuration_keys": None}]
    answer = wire.call("DescribeConfigs", 4, resources=asked).results[0]
    configs = {entry.name: entry.value for entry in answer.configs}
    assert (configs["cleanup.policy"], configs["compression.type"], configs["segment.bytes"]) == (
        "compact",
        "producer",
        "104857600",
    )


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins_and_the_first_member_leads(join: Callable[..., Member], version: int) -> None:
    member = join()
    answer = member.join(version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (OK, 1, "range")
    assert answer.leader == answer.member_id == member.id
    assert [(one.member_id, bytes(one.metadata)) for one in answer.members] == [(member.id, b"meta")]
    assert member.id.startswith("wire-")


@pytest.mark.parametrize("version", range(6))
def test_every_version_syncs(join: Callable[..., Member], version: int) -> None:
    member = join()
    member.join()
    answer = member.sync_alone(version)
    assert (answer.error_code, bytes(answer.assignment)) == (OK, b"all")
    assert member.beat() == OK


@pytest.mark.parametrize("version", range(4, 10))
def test_a_new_dynamic_member_is_given_an_id_first(join: Callable[..., Member], version: int) -> None:
    member = join()
    member.begin_join(version)
    answer = member.end_join()
    assert (answer.error_code, answer.generation_id, answer.members) == (MEMBER_ID_REQUIRED, -1, [])
    assert answer.member_id.startswith("wire-")


def test_a_second_member_makes_the_first_join_again(join: Callable[..., Member]) -> None:
    first, second = join(protocols={"range": b"1"}), join(protocols={"range": b"2"})
    first.join()
    first.sync_alone()
    second.begin_join()
    second.id = second.end_join().member_id
    second.begin_join()
    wait_until(lambda: first.beat() == REBALANCE_IN_PROGRESS, within=5, what="the rebalance begins")
    first.begin_join()
    told = {member.id: member.end_join() for member in (first, second)}
    assert {answer.generation_id for answer in told.values()} == {2}
    assert {answer.leader for answer in told.values()} == {first.id}
    assert {one.member_id for one in told[first.id].members} == {first.id, second.id}
    assert told[second.id].members == []
    asked = second.sync_request()
    correlation = second.wire.send(asked)
    assert bytes(first.sync(5, **{first.id: b"a", second.id: b"b"}).assignment) == b"a"
    assert bytes(second.wire.receive(asked, correlation).assignment) == b"b"


def test_the_protocol_that_most_members_prefer_among_the_common_ones_is_chosen(join: Callable[..., Member]) -> None:
    first = join(protocols={"range": b"", "sticky": b"", "own": b""})
    second = join(protocols={"sticky": b"", "range": b""})
    third = join(protocols={"sticky": b"", "range": b""})
    first.join()
    for member in (second, third):
        member.begin_join()
        member.id = member.end_join().member_id
        member.begin_join()
    wait_until(lambda: first.beat() == REBALANCE_IN_PROGRESS, within=5, what="the rebalance begins")
    first.begin_join()
    assert {member.end_join().protocol_name for member in (first, second, third)} == {"sticky"}


def test_a_member_without_a_common_protocol_or_of_another_kind_is_refused(join: Callable[..., Member]) -> None:
    join().join()
    for other in (join(protocols={"other": b""}), join(kind="consumer"), join(protocols={})):
        other.begin_join()
        assert other.end_join().error_code == INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"session_ms": 5_999}, INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, INVALID_SESSION_TIMEOUT),
        ({"id": "stranger"}, UNKNOWN_MEMBER_ID),
        ({"protocols": {}}, INCONSISTENT_GROUP_PROTOCOL),
        ({"kind": ""}, INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_wrong_join_is_refused(join: Callable[..., Member], settings: dict[str, Any], code: int) -> None:
    member = join(**settings)
    member.begin_join()
    assert member.end_join().error_code == code


def test_the_empty_group_id_is_invalid(server: Server, wire: Wire, group: str) -> None:
    member = Member(server, "")
    with member.wire:
        member.begin_join()
        assert member.end_join().error_code == INVALID_GROUP_ID
        assert member.sync_alone().error_code == INVALID_GROUP_ID
        assert member.beat() == INVALID_GROUP_ID
        assert member.leave().error_code == INVALID_GROUP_ID
    assert wire.call("OffsetDelete", 0, group_id="", topics=[]).error_code == INVALID_GROUP_ID


def test_stale_generations_and_unknown_members_are_told_apart(join: Callable[..., Member], topic: Topic) -> None:
    member = join()
    member.join()
    member.sync_alone()
    assert member.beat(generation=7) == ILLEGAL_GENERATION
    assert member.commit(topic.name, generation=7) == ILLEGAL_GENERATION
    stranger = join(id="stranger", generation=1)
    assert stranger.beat() == UNKNOWN_MEMBER_ID
    assert stranger.commit(topic.name) == UNKNOWN_MEMBER_ID
    assert stranger.sync_alone().error_code == UNKNOWN_MEMBER_ID
    assert stranger.leave().members[0].error_code == UNKNOWN_MEMBER_ID
    assert stranger.leave(2).error_code == UNKNOWN_MEMBER_ID
    member.generation = 7
    assert member.sync_alone().error_code == ILLEGAL_GENERATION


def test_an_unknown_group_has_no_members(join: Callable[..., Member], topic: Topic) -> None:
    stranger = join(id="stranger", generation=1)
    assert stranger.beat() == UNKNOWN_MEMBER_ID
    assert stranger.sync_alone().error_code == UNKNOWN_MEMBER_ID
    left = stranger.leave()
    assert (left.error_code, [one.error_code for one in left.members]) == (OK, [UNKNOWN_MEMBER_ID])
    assert stranger.leave(1).error_code == UNKNOWN_MEMBER_ID
    assert stranger.commit(topic.name, version=8) == ILLEGAL_GENERATION
    assert stranger.commit(topic.name, version=9) == GROUP_ID_NOT_FOUND


def test_nobody_commits_until_the_leader_has_assigned(join: Callable[..., Member], topic: Topic) -> None:
    member = join()
    member.join()
    assert member.commit(topic.name) == REBALANCE_IN_PROGRESS
    member.sync_alone()
    assert member.commit(topic.name) == OK


def test_protocol_type_and_name_have_to_be_the_groups(join: Callable[..., Member]) -> None:
    member = join()
    member.join()
    member.kind = "other"
    assert member.sync_alone().error_code == INCONSISTENT_GROUP_PROTOCOL
    answer = member.wire.call(
        "SyncGroup",
        5,
        group_id=member.group,
        generation_id=1,
        member_id=member.id,
        protocol_type=None,
        protocol_name=None,
        assignments=[],
    )
    assert answer.error_code == INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(6))
def test_every_version_leaves(join: Callable[..., Member], wire: Wire, version: int) -> None:
    member = join()
    member.join()
    member.sync_alone()
    answer = member.leave(version)
    assert answer.error_code == OK
    assert version < 3 or [one.error_code for one in answer.members] == [OK]
    (described,) = wire.call("DescribeGroups", 5, groups=[member.group]).groups
    assert (described.group_state, described.members) == ("Empty", [])


def test_a_static_member_takes_its_place_again_without_a_rebalance(join: Callable[..., Member], topic: Topic) -> None:
    before = join(instance="i1")
    before.join()
    before.sync_alone()
    again = join(instance="i1")
    answer = again.join()
    assert (answer.error_code, answer.generation_id, answer.skip_assignment) == (OK, 1, True)
    assert answer.member_id == answer.leader != before.id
    assert bytes(again.sync().assignment) == b"all"
    assert before.beat() == FENCED_INSTANCE_ID
    assert again.beat() == OK
    assert before.sync().error_code == FENCED_INSTANCE_ID
    before.begin_join()
    assert before.end_join().error_code == FENCED_INSTANCE_ID
    older = join(instance="i1")
    answer = older.join(8)
    assert (answer.error_code, answer.leader, answer.members) == (OK, again.id, [])


def test_a_static_member_is_sent_away_by_its_instance_id(join: Callable[..., Member], wire: Wire) -> None:
    member = join(instance="i1")
    member.join()
    member.sync_alone()
    unknown = {"member_id": "", "group_instance_id": "i9"}
    fenced = {"member_id": "other", "group_instance_id": "i1"}
    known = {"member_id": "", "group_instance_id": "i1"}
    answer = wire.call("LeaveGroup", 5, group_id=member.group, members=[unknown, fenced, known])
    assert [one.error_code for one in answer.members] == [UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, OK]


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_commits_from_outside_of_the_group(wire: Wire, group: str, topic: Topic, version: int) -> None:
    assert commit(wire, group, topic.name, 100 + version, version=version, metadata="kept") == OK
    assert committed(wire, group, topic.name) == (100 + version, "kept", OK)


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version_fetches(wire: Wire, group: str, topic: Topic, version: int) -> None:
    assert committed(wire, group, topic.name, version=version) == (-1, "", OK)
    commit(wire, group, topic.name, 7, metadata="kept")
    assert committed(wire, group, topic.name, version=version) == (7, "kept", OK)


def test_topics_are_named_by_id_in_version_10(wire: Wire, group: str, topic: Topic) -> None:
    assert commit(wire, group, "", 7, version=10, topic_id=topic.id) == OK
    assert committed(wire, group, "", version=10, topic_id=topic.id) == (7, "", OK)
    assert committed(wire, group, topic.name) == (7, "", OK)
    unknown = uuid.uuid4()
    assert commit(wire, group, "", 7, version=10, topic_id=unknown) == UNKNOWN_TOPIC_ID
    assert committed(wire, group, "", version=10, topic_id=unknown) == (-1, "", UNKNOWN_TOPIC_ID)
    everything = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}
    (answer,) = wire.call("OffsetFetch", 10, groups=[everything], require_stable=True).groups
    assert [(one.topic_id, one.partitions[0].committed_offset) for one in answer.topics] == [(topic.id, 7)]


def test_unknown_topics_and_partitions_fail_by_themselves(wire: Wire, group: str, topic: Topic) -> None:
    assert commit(wire, group, "no-such-topic") == UNKNOWN_TOPIC_OR_PARTITION
    parts = [
        {"partition_index": index, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
        for index in (0, 9)
    ]
    answer = wire.call(
        "OffsetCommit",
        8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": "no-such-topic", "partitions": parts[:1]}, {"name": topic.name, "partitions": parts}],
    )
    codes = {(one.name, part.partition_index): part.error_code for one in answer.topics for part in one.partitions}
    assert codes == {
        ("no-such-topic", 0): UNKNOWN_TOPIC_OR_PARTITION,
        (topic.name, 0): OK,
        (topic.name, 9): UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_too_much_metadata_is_refused(wire: Wire, group: str, topic: Topic) -> None:
    assert commit(wire, group, topic.name, metadata="m" * 4096) == OK
    assert commit(wire, group, topic.name, metadata="m" * 4097) == OFFSET_METADATA_TOO_LARGE
    assert committed(wire, group, topic.name)[1] == "m" * 4096


def test_who_is_outside_does_not_commit_while_there_are_members(
    join: Callable[..., Member], wire: Wire, topic: Topic
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    assert commit(wire, member.group, topic.name) == UNKNOWN_MEMBER_ID
    member.leave()
    assert commit(wire, member.group, topic.name) == OK


def test_many_groups_are_fetched_at_once(wire: Wire, group: str, topic: Topic) -> None:
    commit(wire, group, topic.name, 3)
    wanted = [
        {"group_id": name, "topics": [{"name": topic.name, "partition_indexes": [0]}]} for name in (group, "nobody")
    ]
    answer = wire.call("OffsetFetch", 8, groups=wanted, require_stable=False)
    found = {one.group_id: one.topics[0].partitions[0].committed_offset for one in answer.groups}
    assert found == {group: 3, "nobody": -1}


def test_offsets_are_deleted_unless_a_member_is_subscribed(
    join: Callable[..., Member], wire: Wire, topic: Topic
) -> None:
    name = join().group
    wanted = [{"name": topic.name, "partitions": [{"partition_index": 0}, {"partition_index": 9}]}]
    assert wire.call("OffsetDelete", 0, group_id=name, topics=wanted).error_code == GROUP_ID_NOT_FOUND
    commit(wire, name, topic.name)
    answer = wire.call("OffsetDelete", 0, group_id=name, topics=wanted)
    codes = {part.partition_index: part.error_code for part in answer.topics[0].partitions}
    assert (answer.error_code, codes) == (OK, {0: OK, 9: UNKNOWN_TOPIC_OR_PARTITION})
    assert committed(wire, name, topic.name)[0] == -1


def test_offsets_of_a_group_that_is_no_consumer_are_not_deleted(
    join: Callable[..., Member], wire: Wire, topic: Topic
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    wanted = [{"name": topic.name, "partitions": [{"partition_index": 0}]}]
    assert wire.call("OffsetDelete", 0, group_id=member.group, topics=wanted).error_code == NON_EMPTY_GROUP


def test_a_subscribed_topic_keeps_its_offsets(
    join: Callable[..., Member], wire: Wire, create: Callable[..., Topic], topic_name: str
) -> None:
    topic = create(topic_name)
    subscription = b"\0\0\0\0\0\1" + len(topic.name).to_bytes(2) + topic.name.encode() + b"\xff\xff\xff\xff"
    member = join(kind="consumer", protocols={"range": subscription})
    member.join()
    member.sync_alone()
    assert member.commit(topic.name) == OK
    wanted = [{"name": topic.name, "partitions": [{"partition_index": 0}]}]
    answer = wire.call("OffsetDelete", 0, group_id=member.group, topics=wanted)
    assert answer.topics[0].partitions[0].error_code == GROUP_SUBSCRIBED_TO_TOPIC


def test_groups_are_listed_by_state_and_type(join: Callable[..., Member], wire: Wire) -> None:
    member = join()
    member.join()
    member.sync_alone()

    def listed(**filters: list[str]) -> dict[str, tuple[str, str, str]]:
        answer = wire.call("ListGroups", 5, **{"states_filter": [], "types_filter": [], **filters})
        assert answer.error_code == OK
        return {one.group_id: (one.protocol_type, one.group_state, one.group_type) for one in answer.groups}

    assert listed()[member.group] == ("connect", "Stable", "classic")
    assert member.group in listed(states_filter=["stable", "Dead"], types_filter=["CLASSIC"])
    assert member.group not in listed(states_filter=["Empty"])
    assert member.group not in listed(types_filter=["consumer"])
    for version in range(5):
        filters: dict[str, list[str]] = {"states_filter": []} if version >= 4 else {}
        groups = wire.call("ListGroups", version, **filters).groups
        assert member.group in {one.group_id for one in groups}


@pytest.mark.parametrize("version", range(7))
def test_every_version_describes(join: Callable[..., Member], wire: Wire, version: int) -> None:
    member = join(instance="i1")
    member.join()
    member.sync_alone()
    asked = {"include_authorized_operations": False} if version >= 3 else {}
    answer = wire.call("DescribeGroups", version, groups=[member.group, "nobody"], **asked)
    described = {one.group_id: one for one in answer.groups}
    known, unknown = described[member.group], described["nobody"]
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
    join: Callable[..., Member], wire: Wire, topic: Topic, version: int
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    member.commit(topic.name)

    def deleted() -> dict[str, int]:
        answer = wire.call("DeleteGroups", version, groups_names=[member.group, "nobody", member.group])
        return {one.group_id: one.error_code for one in answer.results}

    assert deleted() == {member.group: NON_EMPTY_GROUP, "nobody": GROUP_ID_NOT_FOUND}
    member.leave()
    assert deleted() == {member.group: OK, "nobody": GROUP_ID_NOT_FOUND}
    assert committed(wire, member.group, topic.name)[0] == -1


def test_a_deleted_topics_offsets_are_forgotten(wire: Wire, group: str, topic: Topic) -> None:
    commit(wire, group, topic.name, 7)
    wire.call("DeleteTopics", 5, topic_names=[topic.name], timeout_ms=10_000)
    wait_until(lambda: committed(wire, group, topic.name)[0] == -1, within=10, what="the offset is forgotten")
