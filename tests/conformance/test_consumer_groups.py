"""Groups of the consumer protocol (KIP-848) as clients see them: librdkafka, Kafka's Java consumer, and raw requests.

With `PYBROKER_CONFORMANCE_PEER=kafka` the same claims hold of Apache Kafka.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from pybench.peers import java
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from pybroker.protocol.schema import Message
from tests.conformance import classic_members
from tests.conformance.conftest import Server, Topic, coordinated
from tests.support import kafka_tools, programs
from tests.support.conditions import wait_until
from tests.support.wire import Wire, header

pytestmark = pytest.mark.one_and_three

PARTITIONS, RECORDS = 12, 600
STALE = ErrorCode.STALE_MEMBER_EPOCH


@pytest.fixture
def group_id(wire: Wire, server: Server) -> str:
    """An id that no other test has, of a group whose coordinator answers."""
    made = coordinated(wire, server)

    def responses() -> bool:
        request = ConsumerGroupDescribeRequest(group_ids=[made])
        (described,) = query(wire, request, ConsumerGroupDescribeResponse, 1).groups
        return bool(described.error_code == ErrorCode.GROUP_ID_NOT_FOUND)

    wait_until(responses, within=60, what="the coordinator is loaded")
    return made


@pytest.fixture
def filled(server: Server, create: Callable[..., Topic]) -> Topic:
    """A topic with records in all of its partitions."""
    topic = create(partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": server.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(topic.name, value=str(number), partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    return topic


class Member:
    """A librdkafka consumer, polled by the test that waits for it."""

    def __init__(self, server: Server, group_id: str, subscription: list[str], **settings: Any) -> None:
        self.values: list[str] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "group.id": group_id,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._consumer.subscribe(subscription)

    def poll(self) -> set[int]:
        """Read what there is, and return the partitions that it has."""
        for message in self._consumer.consume(100, timeout=0.02):
            assert message.error() is None, message.error()
            self.values.append(message.value().decode())
        return {partition.partition for partition in self._consumer.assignment()}

    def close(self) -> None:
        """Commit and leave."""
        self._consumer.close()


@pytest.fixture
def join(server: Server, group_id: str) -> Iterator[Callable[..., Member]]:
    """Lets members join the test's group; they leave when the test ends."""
    with ExitStack() as stack:

        def made(subscription: list[str], **settings: Any) -> Member:
            member = Member(server, group_id, subscription, **settings)
            stack.callback(member.close)
            return member

        yield made


def _shares(*members: Member) -> list[int]:
    return sorted(len(member.poll()) for member in members)


def _read(*members: Member) -> set[str]:
    _shares(*members)
    return {value for member in members for value in member.values}


def test_members_share_a_topic_and_every_record_is_read_once(filled: Topic, join: Callable[..., Member]) -> None:
    members = [join([filled.name]) for _ in range(3)]
    wait_until(lambda: _shares(*members) == [4, 4, 4], within=60, what="three members have four partitions each")
    everything = {str(number) for number in range(RECORDS)}
    wait_until(lambda: _read(*members) == everything, within=60, what="every record is read")
    assert len({partition for member in members for partition in member.poll()}) == PARTITIONS


def test_who_leaves_gives_its_partitions_and_offsets_to_the_others(filled: Topic, join: Callable[..., Member]) -> None:
    first = join([filled.name])
    wait_until(lambda: first.poll() and len(first.values) == RECORDS, within=60, what="everything is read")
    first.close()
    second = join([filled.name])
    wait_until(lambda: _shares(second) == [PARTITIONS], within=60, what="the second member has all")
    assert second.values == []


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_a_member_wishes_for_an_assignor(
    server: Server, group_id: str, filled: Topic, join: Callable[..., Member], assignor: str
) -> None:
    member = join([filled.name], group_remote_assignor=assignor)
    wait_until(lambda: _shares(member) == [PARTITIONS], within=60, what="the member has all")
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    described = admin.describe_consumer_groups([group_id])[group_id].result()
    assert (described.partition_assignor, described.state.name, described.type.name) == (assignor, "STABLE", "CONSUMER")


def test_a_pattern_is_subscribed_to(filled: Topic, join: Callable[..., Member]) -> None:
    member = join([f"^({filled.name}|no such topic)$"])
    wait_until(lambda: member.poll() and len(member.values) == RECORDS, within=60, what="the pattern's topic is read")


def test_members_of_both_protocols_share_a_group(filled: Topic, join: Callable[..., Member]) -> None:
    old = join([filled.name], group_protocol="classic", partition_assignment_strategy="cooperative-sticky")
    wait_until(lambda: _shares(old) == [PARTITIONS], within=60, what="the classic member has all")
    new = join([filled.name])
    wait_until(lambda: _shares(old, new) == [6, 6], within=60, what="both have half")
    new.close()
    wait_until(lambda: _shares(old) == [PARTITIONS], within=60, what="the classic member has all again")


@pytest.mark.java
@pytest.mark.parametrize("by", ["--topic", "--include"])
def test_kafkas_console_consumer_reads_a_topic(server: Server, group_id: str, filled: Topic, by: str) -> None:
    programs.kafka_tools()
    read = java.run_java_tool(
        "console-consumer",
        *("--bootstrap-server", server.bootstrap_servers, by, filled.name, "--group", group_id, "--from-beginning"),
        *("--command-property", "group.protocol=consumer", "--max-messages", str(RECORDS), "--timeout-ms", "60000"),
    )
    assert sorted(read.stdout.split()[:RECORDS], key=int) == [str(number) for number in range(RECORDS)], read.stderr


@pytest.mark.java
def test_kafkas_dump_tool_decodes_the_records_of_a_group(
    server: Server, group_id: str, filled: Topic, join: Callable[..., Member]
) -> None:
    programs.kafka_tools()
    member = join([filled.name])
    wait_until(lambda: _shares(member) == [PARTITIONS], within=60, what="the member has all")
    logs = sorted(str(path) for path in server.log_directory.glob("__consumer_offsets-*/*.log") if path.stat().st_size)
    dumped = kafka_tools.run("dump-log", "--offsets-decoder", "--files", ",".join(logs)).stdout
    keys = [json.loads(key) for key in re.findall(r" key: (\{.*?\}) payload: ", dumped) if f'"{group_id}"' in key]
    assert {"3", "5", "6", "7", "8"} <= {str(key["type"]) for key in keys}, dumped[-2000:]


def query(wire: Wire, request: Message, response: type[Any], version: int) -> Any:
    """Send one of our messages by its own frame, and decode the answer."""
    head = header(request.__message__.api_key, version, 7, b"w", flexible=True)
    wire.send_frame(head + encode(request, version))
    return decode(response, wire.read_frame(), version, 5)[0]  # Behind the correlation id and an empty tag section.


def heartbeat(server: Server, version: int = 1, **reported: Any) -> Any:
    """A heartbeat that joins with everything that is needed, but for what is said."""
    first = {
        "group_id": "g",
        "member_id": "m",
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    request = ConsumerGroupHeartbeatRequest(**{**first, **reported})
    with Wire(server.bootstrap_servers) as wire:
        return query(wire, request, ConsumerGroupHeartbeatResponse, version)


@pytest.mark.parametrize(
    ("reported", "code", "fault"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST, "MemberId can't be empty."),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST, "InstanceId can't be empty."),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST, "RackId can't be empty."),
        (
            {"rebalance_timeout_ms": -1},
            ErrorCode.INVALID_REQUEST,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            ErrorCode.INVALID_REQUEST,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST, "InstanceId can't be null."),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid."),
        (
            {"server_assignor": "magic"},
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "ServerAssignor magic is not supported. Supported assignors: uniform, range.",
        ),
        (
            {"subscribed_topic_regex": "["},
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            "SubscribedTopicRegex `[` is not a valid regular expression: missing closing ].",
        ),
    ],
)
def test_a_wrong_heartbeat_is_refused_in_kafkas_words(
    server: Server, group_id: str, reported: dict[str, Any], code: ErrorCode, fault: str
) -> None:
    reply = heartbeat(server, **{"group_id": group_id, **reported})
    assert (reply.error_code, reply.error_message) == (code, fault)


def test_wrong_members_and_epochs_are_refused_in_kafkas_words(server: Server, group_id: str) -> None:
    def respond(**reported: Any) -> tuple[ErrorCode, str | None]:
        reply = heartbeat(server, group_id=group_id, **reported)
        return ErrorCode(reply.error_code), reply.error_message

    not_found = (ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    assert respond(member_epoch=1) == not_found
    assert respond() == (ErrorCode.NONE, None)
    assert respond(member_id="n", member_epoch=1) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member n is not a member of group {group_id}.",
    )
    for epoch, word in ((99, "greater"), (1, "smaller")):
        fault = (
            f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group "
            "coordinator (2). The member must abandon all its partitions and rejoin."
        )
        assert respond(member_epoch=epoch) == (ErrorCode.FENCED_MEMBER_EPOCH, fault)
    assert respond(member_id="s1", instance_id="i") == (ErrorCode.NONE, None)
    assert respond(member_id="s2", instance_id="i") == (
        ErrorCode.UNRELEASED_INSTANCE_ID,
        "Static member s2 with instance id i cannot join the group because the instance id is owned by s1 member.",
    )
    assert respond(member_id="s2", instance_id="i", member_epoch=1) == (
        ErrorCode.FENCED_INSTANCE_ID,
        "Static member s2 with instance id i was fenced by member s1.",
    )


@pytest.mark.parametrize(("version", "instance"), [(0, None), (3, None), (5, ""), (9, "")])
def test_a_classic_member_of_any_version_comes_into_the_group(
    server: Server, group_id: str, create: Callable[..., Topic], version: int, instance: str | None
) -> None:
    topic = create(partitions=2)
    assert heartbeat(server, group_id=group_id, subscribed_topic_names=[]).error_code == ErrorCode.NONE
    subscription = b"\0\0\0\0\0\1" + len(topic.name).to_bytes(2) + topic.name.encode() + b"\xff\xff\xff\xff"
    member = classic_members.Member(
        server, group_id, instance=instance, protocols={"range": subscription}, kind="consumer", session_ms=30_000
    )
    with member.wire:
        assert member.join(version).error_code == ErrorCode.NONE
        assert member.beat() == ErrorCode.NONE, "its time to ask for its share has just begun"
        assignment = bytes(member.sync().assignment)
        assert member.leave().members[0].error_code == ErrorCode.NONE
    assert assignment[6:].startswith(len(topic.name).to_bytes(2) + topic.name.encode() + b"\0\0\0\2")


def test_a_group_is_fetched_by_topics_and_whole_at_once(
    server: Server, wire: Wire, group_id: str, create: Callable[..., Topic]
) -> None:
    name = create().name
    epoch = heartbeat(server, group_id=group_id, subscribed_topic_names=[name]).member_epoch
    classic_members.commit(wire, group_id, name, 7, member="m", generation=epoch, version=9)
    requested = [
        {"topics": [{"name": name, "partition_indexes": [0]}], "member_id": "m", "member_epoch": epoch},
        {"topics": None, "member_id": "stranger", "member_epoch": 7},
        {"topics": None, "member_id": "m", "member_epoch": epoch},
        {"topics": None, "member_id": "m", "member_epoch": epoch + 1},
    ]
    groups = [{"group_id": group_id, **one} for one in requested]
    response = wire.call("OffsetFetch", 9, groups=groups, require_stable=False)
    assert [
        (one.error_code, [part.committed_offset for topic in one.topics for part in topic.partitions])
        for one in response.groups
    ] == [(ErrorCode.NONE, [7]), (ErrorCode.UNKNOWN_MEMBER_ID, []), (ErrorCode.NONE, [7]), (STALE, [])]


def test_groups_that_are_none_of_the_consumer_protocol_are_said_not_to_be_found(server: Server, group_id: str) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    with Wire(server.bootstrap_servers) as wire:
        (described,) = query(wire, request, ConsumerGroupDescribeResponse, 1).groups
    assert (described.error_code, described.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Group {group_id} not found.",
    )


def test_a_described_member_has_what_it_was_given(server: Server, group_id: str, create: Callable[..., Topic]) -> None:
    topic = create(partitions=2)
    reply = heartbeat(server, group_id=group_id, subscribed_topic_names=[topic.name])
    (given,) = reply.assignment.topic_partitions
    assert given == TopicPartitions(topic_id=given.topic_id, partitions=[0, 1])
    with Wire(server.bootstrap_servers) as wire:
        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
        (described,) = query(wire, request, ConsumerGroupDescribeResponse, 1).groups
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 2, 2)
    assert (described.assignor_name, len(described.members)) == ("uniform", 1)
    (member,) = described.members
    (has,) = member.assignment.topic_partitions
    assert (has.topic_name, has.partitions, member.target_assignment) == (topic.name, [0, 1], member.assignment)
    assert (member.member_id, member.member_epoch, member.client_id, member.member_type) == ("m", 2, "w", 1)
    assert member.client_host.startswith("/")
