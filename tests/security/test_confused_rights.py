"""Entries about one name say nothing of names that are like it, and what may not be described is named nowhere.

Who asks is alice, who may do what the entries of a test say; the entries are made by the plain listener.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.sasl_clients import NONE, handshake, token
from tests.support.batches import TRANSACTIONAL, batch_of
from tests.support.conditions import wait_until
from tests.support.secured_server import PASSWORD, At
from tests.support.wire import Wire, fetch, fetched, produce, produced

TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5
LITERAL, PREFIXED = 3, 4
ALL, READ = 2, 3
DENY, ALLOW = 2, 3
TOPIC_REFUSED, GROUP_REFUSED, TRANSACTIONAL_ID_REFUSED = 29, 30, 53
UNKNOWN_TOPIC_ID, UNKNOWN_MEMBER_ID = 100, 25
SECRET = "hidden-"
BATCH = batch_of(b"a")

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def plain(at: At) -> Iterator[Wire]:
    """A connection that may do everything."""
    with Wire(at("PLAINTEXT")) as wire:
        first = lambda: wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=["g"]).coordinators[0].error_code  # noqa: E731
        wait_until(lambda: first() == NONE, within=60, what="groups have a coordinator")
        yield wire


@pytest.fixture
def alice(at: At) -> Iterator[Wire]:
    """A connection of alice's."""
    with Wire(at("SASL_PLAINTEXT")) as wire:
        handshake(wire, "PLAIN")
        assert token(wire, f"\0alice\0{PASSWORD}".encode()).error_code == NONE
        yield wire


@pytest.fixture
def begin() -> str:
    """What the names of a test begin with, which no other test's do."""
    return f"n{next(_numbers):03}-"


def entries(plain: Wire, *entries: tuple[int, str, int, int, int]) -> None:
    """Make entries about alice: resource type, name, pattern, operation, permission."""
    creations = [
        {
            "resource_type": kind,
            "resource_name": name,
            "resource_pattern_type": pattern,
            "principal": "User:alice",
            "host": "*",
            "operation": operation,
            "permission_type": permission,
        }
        for kind, name, pattern, operation, permission in entries
    ]
    response = plain.call("CreateAcls", 3, creations=creations)
    assert [result.error_code for result in response.results] == [NONE] * len(entries)


def topics(plain: Wire, *names: str) -> dict[str, Any]:
    """Create topics; returns their ids."""
    made = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    response = plain.call("CreateTopics", 7, topics=made, timeout_ms=10_000, validate_only=False)
    assert [topic.error_code for topic in response.topics] == [NONE] * len(names)
    for name in names:
        wait_until(lambda name=name: fetched(plain.query(fetch(name))).error_code == NONE, within=60, what="a leader")  # type: ignore[misc]
    return {topic.name: topic.topic_id for topic in response.topics}


def readable(alice: Wire, *names: str) -> list[str]:
    """Which topics alice may read, asked twice: the second time it is remembered."""
    for _ in range(2):
        codes = {name: fetched(alice.query(fetch(name))).error_code for name in names}
    assert set(codes.values()) <= {NONE, TOPIC_REFUSED}
    return [name for name, code in codes.items() if code == NONE]


def readable_groups(alice: Wire, *names: str) -> list[str]:
    """Which groups alice may read."""
    codes = {
        name: alice.call("Heartbeat", 0, group_id=name, generation_id=0, member_id="x").error_code for name in names
    }
    # Kafka answers nothing but 0 to who may, while the group's coordinator reads its log.
    assert set(codes.values()) <= {NONE, UNKNOWN_MEMBER_ID, GROUP_REFUSED}, codes
    return [name for name, code in codes.items() if code != GROUP_REFUSED]


def test_a_literal_name_is_about_that_name(plain: Wire, alice: Wire, begin: str) -> None:
    names = [begin + end for end in ("a", "ab", "A", "a.", "a-b")]
    topics(plain, *names)
    entries(plain, (TOPIC, begin + "a", LITERAL, READ, ALLOW))
    wait_until(lambda: readable(alice, *names) == [begin + "a"], within=60, what="the entry is in force")


def test_a_prefix_is_about_what_begins_with_it_and_nothing_shorter(plain: Wire, alice: Wire, begin: str) -> None:
    names = [begin + end for end in ("a", "ab", "abc", "aB", "b")]
    topics(plain, *names)
    entries(plain, (TOPIC, begin + "ab", PREFIXED, READ, ALLOW))
    wait_until(lambda: readable(alice, *names) == names[1:3], within=60, what="the entry is in force")


@pytest.mark.parametrize("pattern", [LITERAL, PREFIXED])
def test_a_star_behind_a_name_is_a_letter(plain: Wire, alice: Wire, begin: str, pattern: int) -> None:
    """`a*` is no pattern: it is about a group of that name, or about those that begin with it."""
    names = [begin + end for end in ("a", "ab", "a*", "a*b")]
    entries(plain, (GROUP, begin + "a*", pattern, READ, ALLOW))
    expected = names[2:3] if pattern == LITERAL else names[2:]
    wait_until(lambda: readable_groups(alice, *names) == expected, within=60, what="the entry is in force")


def test_a_prefix_of_a_star_is_not_everything(plain: Wire, alice: Wire, begin: str) -> None:
    entries(plain, (GROUP, "*", PREFIXED, READ, ALLOW))
    wait_until(lambda: readable_groups(alice, "*" + begin) == ["*" + begin], within=60, what="the entry is in force")
    assert readable_groups(alice, begin, "a") == []


def test_a_refusal_of_a_prefix_holds_against_what_allows_a_longer_name(plain: Wire, alice: Wire, begin: str) -> None:
    names = [begin + end for end in ("a", "ab", "abc", "b")]
    topics(plain, *names)
    entries(
        plain,
        (TOPIC, begin, PREFIXED, READ, ALLOW),
        (TOPIC, begin + "abc", LITERAL, READ, ALLOW),
        (TOPIC, begin + "ab", PREFIXED, READ, DENY),
    )
    wait_until(lambda: readable(alice, *names) == [names[0], names[3]], within=60, what="the entries are in force")


def test_a_right_to_a_group_is_none_to_a_topic_of_its_name(plain: Wire, alice: Wire, begin: str) -> None:
    topics(plain, begin)
    entries(plain, (GROUP, begin, LITERAL, ALL, ALLOW))
    wait_until(lambda: readable_groups(alice, begin) == [begin], within=60, what="the entry is in force")
    assert readable(alice, begin) == []


def test_a_right_to_read_is_none_to_write(plain: Wire, alice: Wire, begin: str) -> None:
    topics(plain, begin)
    entries(plain, (TOPIC, begin, LITERAL, READ, ALLOW))
    wait_until(lambda: readable(alice, begin) == [begin], within=60, what="the entry is in force")
    for _ in range(2):
        assert produced(alice.query(produce(begin, BATCH))).error_code == TOPIC_REFUSED


def test_an_entry_that_is_gone_allows_nothing(plain: Wire, alice: Wire, begin: str) -> None:
    topics(plain, begin)
    entries(plain, (TOPIC, begin, LITERAL, READ, ALLOW))
    wait_until(lambda: readable(alice, begin) == [begin], within=60, what="the entry is in force")
    found = {
        "resource_type_filter": TOPIC,
        "resource_name_filter": begin,
        "pattern_type_filter": LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    plain.call("DeleteAcls", 3, filters=[found])
    wait_until(lambda: readable(alice, begin) == [], within=60, what="the entry is gone")


def test_a_topic_made_again_by_another_has_no_rights_of_the_old_ones_id(plain: Wire, alice: Wire, begin: str) -> None:
    old = topics(plain, begin)[begin]
    entries(plain, (TOPIC, begin, LITERAL, READ, ALLOW))
    wait_until(lambda: readable(alice, begin) == [begin], within=60, what="the entry is in force")
    plain.call("DeleteTopics", 5, topic_names=[begin], timeout_ms=10_000)

    def by_old_id() -> int:
        return int(fetched(alice.query(fetch("", version=13, topic_id=old))).error_code)

    wait_until(lambda: by_old_id() == UNKNOWN_TOPIC_ID, within=60, what="the topic is gone")
    other = topics(plain, begin + "x")[begin + "x"]
    assert fetched(alice.query(fetch("", version=13, topic_id=other))).error_code == TOPIC_REFUSED


def test_a_topic_by_its_id_is_refused_without_its_name(plain: Wire, alice: Wire, begin: str) -> None:
    name = f"{SECRET}{begin}"
    topic_id = topics(plain, name)[name]
    (described,) = alice.call(
        "Metadata",
        12,
        topics=[{"topic_id": topic_id, "name": None}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    ).topics
    assert (described.error_code, described.name, described.partitions) == (TOPIC_REFUSED, None, [])
    (deleted,) = alice.call(
        "DeleteTopics", 6, topics=[{"name": None, "topic_id": topic_id}], timeout_ms=10_000
    ).responses
    assert (deleted.error_code, deleted.name) == (TOPIC_REFUSED, None)
    (unknown,) = alice.call(
        "DeleteTopics", 6, topics=[{"name": None, "topic_id": uuid.uuid4()}], timeout_ms=10_000
    ).responses
    assert (unknown.error_code, unknown.name) == (UNKNOWN_TOPIC_ID, None)


LISTS: dict[str, tuple[int, dict[str, Any]]] = {
    "Metadata": (12, {"topics": None, "allow_auto_topic_creation": False}),
    "DescribeTopicPartitions": (0, {"topics": [], "response_partition_limit": 2000, "cursor": None}),
    "ListGroups": (4, {"states_filter": []}),
    "DescribeLogDirs": (4, {"topics": None}),
    "ListTransactions": (0, {"state_filters": [], "producer_id_filters": []}),
    "ListPartitionReassignments": (0, {"timeout_ms": 1000, "topics": None}),
    # Kafka leaves None, which is as good, without an answer.
    "DescribeUserScramCredentials": (0, {"users": []}),
    "DescribeAcls": (
        3,
        {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": None,
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        },
    ),
}


@pytest.fixture(scope="module")
def hidden(plain: Wire) -> str:
    """A topic, a group and an entry that alice may not describe; the letters that their names begin with."""
    topics(plain, f"{SECRET}topic")
    entries(plain, (TOPIC, f"{SECRET}entry", LITERAL, READ, DENY))
    offsets = [{"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}]

    def commits() -> bool:
        response = plain.call(
            "OffsetCommit",
            8,
            group_id=f"{SECRET}group",
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": f"{SECRET}topic", "partitions": offsets}],
        )
        return bool(response.topics[0].partitions[0].error_code == NONE)

    wait_until(commits, within=60, what="the group has an offset")
    producer(plain, f"{SECRET}transactions")
    return SECRET


def producer(plain: Wire, transactional_id: str) -> tuple[int, int]:
    """Whom a transactional id belongs to from now on: its producer id and epoch."""
    found: list[Any] = []

    def begun() -> bool:
        # The topic of transactional ids is made for who asks where they are.
        plain.call("FindCoordinator", 4, key_type=1, coordinator_keys=[transactional_id])
        made = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
        found.append(plain.call("InitProducerId", 4, **made, producer_id=-1, producer_epoch=-1))
        return bool(found[-1].error_code == NONE)

    wait_until(begun, within=60, what="transactional ids have a coordinator")
    return found[-1].producer_id, found[-1].producer_epoch


@pytest.mark.parametrize("name", LISTS)
def test_what_may_not_be_described_is_not_in_a_list(hidden: str, alice: Wire, plain: Wire, name: str) -> None:
    version, fields = LISTS[name]
    assert hidden.encode() not in raw(alice, name, version, fields)
    if name not in ("ListPartitionReassignments", "DescribeUserScramCredentials"):
        assert hidden.encode() in raw(plain, name, version, fields), "who may describe it sees it"


def raw(wire: Wire, name: str, version: int, fields: Any) -> bytes:
    from tests.support.wire import request

    wire.send(request(name, version, **fields))
    return wire.read_frame()


def test_a_refused_group_is_the_same_whether_it_is_there_or_not(hidden: str, alice: Wire) -> None:
    there, not_there = f"{hidden}group", f"{hidden}grouq"
    for name, version, fields in [
        ("DescribeGroups", 5, lambda group: {"groups": [group]}),
        ("OffsetFetch", 7, lambda group: {"group_id": group, "topics": None, "require_stable": False}),
        ("DeleteGroups", 2, lambda group: {"groups_names": [group]}),
        ("FindCoordinator", 4, lambda group: {"key_type": 0, "coordinator_keys": [group]}),
    ]:
        responses = [raw(alice, name, version, fields(group))[4:] for group in (there, not_there)]
        assert responses[0].replace(there.encode(), b"") == responses[1].replace(not_there.encode(), b""), name


def of_transactions(name: str, owner: tuple[int, int]) -> dict[str, tuple[int, dict[str, Any]]]:
    """What may be asked about a transactional id, with the producer that has it."""
    who = {"producer_id": owner[0], "producer_epoch": owner[1]}
    offset = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
    group = {"group_id": f"{name}-own", "generation_id": -1, "member_id": "", "group_instance_id": None}
    topic = f"{name}-own"
    return {
        "FindCoordinator": (4, {"key_type": 1, "coordinator_keys": [name]}),
        "InitProducerId": (4, {"transactional_id": name, "transaction_timeout_ms": 60_000, **who}),
        "AddPartitionsToTxn": (
            3,
            {
                "v3_and_below_transactional_id": name,
                "v3_and_below_producer_id": owner[0],
                "v3_and_below_producer_epoch": owner[1],
                "v3_and_below_topics": [{"name": topic, "partitions": [0]}],
            },
        ),
        "AddOffsetsToTxn": (3, {"transactional_id": name, **who, "group_id": group["group_id"]}),
        "TxnOffsetCommit": (
            3,
            {"transactional_id": name, **who, **group, "topics": [{"name": topic, "partitions": [offset]}]},
        ),
        "EndTxn": (3, {"transactional_id": name, **who, "committed": False}),
        "DescribeTransactions": (0, {"transactional_ids": [name]}),
    }


def test_a_transactional_id_of_another_is_refused_to_every_request(plain: Wire, alice: Wire, begin: str) -> None:
    """Whether it is there or not, and whatever alice may do to her topic and her group."""
    there, not_there = f"{begin}there", f"{begin}nicht"
    for name in (there, not_there):
        topics(plain, f"{name}-own")
        entries(plain, (TOPIC, f"{name}-own", LITERAL, ALL, ALLOW), (GROUP, f"{name}-own", LITERAL, ALL, ALLOW))
    entries(plain, (TRANSACTIONAL_ID, begin + "th", LITERAL, ALL, ALLOW))
    wait_until(lambda: readable(alice, f"{not_there}-own") != [], within=60, what="the entries are in force")
    owner = producer(plain, there)
    requested = {name: of_transactions(name, owner) for name in (there, not_there)}
    for api, (version, fields) in requested[there].items():
        responses = [
            raw(alice, api, version, fields if name == there else requested[name][api][1])[4:]
            for name in (there, not_there)
        ]
        assert responses[0].replace(there.encode(), b"") == responses[1].replace(not_there.encode(), b""), api
        assert TRANSACTIONAL_ID_REFUSED.to_bytes(2, "big") in responses[0], api
    for name in (there, not_there):
        header = {"producer_id": owner[0], "producer_epoch": owner[1], "base_sequence": 0}
        batch = batch_of(b"x", attributes=TRANSACTIONAL, **header)
        data = [{"name": f"{name}-own", "partition_data": [{"index": 0, "records": batch}]}]
        sent = {"transactional_id": name, "acks": -1, "timeout_ms": 10_000, "topic_data": data}
        assert produced(alice.call("Produce", 9, **sent)).error_code == TRANSACTIONAL_ID_REFUSED
    # Nothing of it has moved the one that has the id.
    assert producer(plain, there)[1] == owner[1] + 1


def test_a_refused_topic_is_the_same_whether_it_is_there_or_not(hidden: str, alice: Wire) -> None:
    there, not_there = f"{hidden}topic", f"{hidden}topix"
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    cases: list[tuple[str, int, Callable[[str], dict[str, Any]]]] = [
        (
            "Metadata",
            12,
            lambda topic: {"topics": [{"topic_id": None, "name": topic}], "allow_auto_topic_creation": True},
        ),
        (
            "ListOffsets",
            6,
            lambda topic: {
                "replica_id": -1,
                "isolation_level": 0,
                "topics": [{"name": topic, "partitions": [partition]}],
            },
        ),
        (
            "DescribeConfigs",
            4,
            lambda topic: {"resources": [{"resource_type": 2, "resource_name": topic, "configuration_keys": None}]},
        ),
        (
            "CreatePartitions",
            2,
            lambda topic: {
                "topics": [{"name": topic, "count": 9, "assignments": None}],
                "timeout_ms": 1000,
                "validate_only": True,
            },
        ),
        ("DeleteTopics", 5, lambda topic: {"topic_names": [topic], "timeout_ms": 1000}),
        (
            "DeleteRecords",
            2,
            lambda topic: {
                "topics": [{"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}],
                "timeout_ms": 1000,
            },
        ),
    ]
    for name, version, fields in cases:
        responses = [raw(alice, name, version, fields(topic))[4:] for topic in (there, not_there)]
        assert responses[0].replace(there.encode(), b"") == responses[1].replace(not_there.encode(), b""), name
        assert TOPIC_REFUSED.to_bytes(2, "big") in responses[0], name
