"""DescribeTopicPartitions: topics in order, in parts as large as the client or the broker wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import kafka
import pytest

from tests.conformance.conftest import Server, Topic, serving
from tests.support.conditions import wait_until
from tests.support.wire import Wire

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC = 17
INVALID_REQUEST = 42
ALL_OPERATIONS = 3576
NOT_REQUESTED = -(2**31)
SIZES = {"a": 3, "b": 1, "c": 4}

Cursor = tuple[str, int]


def describe(wire: Wire, *names: str, limit: int = 2000, cursor: Cursor | None = None) -> Any:
    """An answer about these topics; about all without any."""
    at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
    topics = [{"name": name} for name in names]
    return wire.call("DescribeTopicPartitions", 0, topics=topics, response_partition_limit=limit, cursor=at)


def shown(response: Any) -> list[tuple[str, list[int]]]:
    """Topics with the partitions that an answer has of them."""
    return [(topic.name, [part.partition_index for part in topic.partitions]) for topic in response.topics]


def cursor_of(response: Any) -> Cursor | None:
    at = response.next_cursor
    return None if at is None else (at.topic_name, at.partition_index)


def pages(wire: Wire, *names: str, limit: int) -> Iterator[Any]:
    """Ask until there is no more."""
    response = describe(wire, *names, limit=limit)
    yield response
    while (cursor := cursor_of(response)) is not None:
        response = describe(wire, *names, limit=limit, cursor=cursor)
        yield response


@pytest.fixture
def three(create: Callable[..., Topic], topic_name: str) -> list[str]:
    """Topics of 3, 1 and 4 partitions whose names are in order."""
    return [create(f"{topic_name}-{letter}", partitions=count).name for letter, count in SIZES.items()]


def test_a_topic_is_described_with_its_partitions_and_nobody_eligible(
    wire: Wire, create: Callable[..., Topic], server: Server
) -> None:
    topic = create(partitions=2)
    replicas = list(server.brokers)
    response = describe(wire, topic.name)
    (found,) = response.topics
    assert (response.throttle_time_ms, response.next_cursor) == (0, None)
    assert (found.error_code, found.name, found.topic_id, found.is_internal) == (0, topic.name, topic.id, False)
    assert found.topic_authorized_operations == ALL_OPERATIONS
    assert [
        (
            part.error_code,
            part.partition_index,
            part.leader_id,
            part.leader_epoch,
            part.replica_nodes,
            part.isr_nodes,
            part.eligible_leader_replicas,
            part.last_known_elr,
            part.offline_replicas,
        )
        for part in found.partitions
    ] == [(0, index, replicas[0], 0, replicas, replicas, [], [], []) for index in range(2)]


def test_topics_come_in_order_and_once(wire: Wire, three: list[str]) -> None:
    a, b, c = three
    assert shown(describe(wire, c, a, b, a)) == [(a, [0, 1, 2]), (b, [0]), (c, [0, 1, 2, 3])]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7, 8])
def test_pages_have_as_many_partitions_as_are_asked_for(wire: Wire, three: list[str], limit: int) -> None:
    responses = list(pages(wire, *three, limit=limit))
    every = [(name, index) for response in responses for name, parts in shown(response) for index in parts]
    assert every == [(name, index) for name, count in zip(three, SIZES.values(), strict=True) for index in range(count)]
    sizes = [sum(len(topic.partitions) for topic in response.topics) for response in responses]
    assert sizes[:-1] == [limit] * (len(sizes) - 1)
    assert 0 < sizes[-1] <= limit


def test_all_topics_come_in_order_and_in_pages(wire: Wire, three: list[str]) -> None:
    found: dict[str, list[int]] = {}
    for response in pages(wire, limit=5):
        for name, parts in shown(response):
            found.setdefault(name, []).extend(parts)
    assert list(found) == sorted(found)
    assert [found[name] for name in three] == [list(range(count)) for count in SIZES.values()]


@pytest.mark.parametrize("limit", [0, -1, -(2**31)])
def test_a_page_has_at_least_one_partition(wire: Wire, three: list[str], limit: int) -> None:
    response = describe(wire, *three, limit=limit)
    assert (shown(response), cursor_of(response)) == ([(three[0], [0])], (three[0], 1))


def test_a_page_that_ends_with_a_topic_goes_on_with_the_next_one_asked_for(wire: Wire, three: list[str]) -> None:
    a, b, c = three
    assert cursor_of(describe(wire, *three, limit=3)) == (b, 0)
    assert cursor_of(describe(wire, a, c, limit=3)) == (c, 0)
    missing = f"{a}-is-not-there"
    assert cursor_of(describe(wire, a, missing, limit=3)) == (missing, 0)
    assert cursor_of(describe(wire, a, limit=3)) is None


def test_a_cursor_is_where_an_answer_begins(wire: Wire, three: list[str]) -> None:
    a, b, c = three
    assert shown(describe(wire, *three, cursor=(a, 2))) == [(a, [2]), (b, [0]), (c, [0, 1, 2, 3])]
    assert shown(describe(wire, *three, cursor=(c, 1))) == [(c, [1, 2, 3])]
    assert shown(describe(wire, *three, cursor=(b, 9))) == [(b, []), (c, [0, 1, 2, 3])], "a topic may have shrunk"


def test_a_cursor_of_a_topic_that_is_gone_goes_on_behind_it(wire: Wire, three: list[str]) -> None:
    a, b, c = three
    removed = f"{a}-is-gone"
    mine = [one for one in shown(describe(wire, cursor=(removed, 7))) if one[0] in three]
    assert mine == [(b, [0]), (c, [0, 1, 2, 3])]
    response = describe(wire, b, removed, cursor=(removed, 7))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        (removed, UNKNOWN_TOPIC_OR_PARTITION),
        (b, 0),
    ]


def test_a_cursor_beside_the_request_is_refused(wire: Wire, three: list[str]) -> None:
    a, b, c = three
    for response in (describe(wire, a, c, cursor=(b, 0)), describe(wire, a, c, cursor=(c, -1))):
        assert [(topic.name, topic.error_code, topic.partitions) for topic in response.topics] == [
            (a, INVALID_REQUEST, []),
            (c, INVALID_REQUEST, []),
        ]
        assert {topic.topic_authorized_operations for topic in response.topics} == {NOT_REQUESTED}
        assert cursor_of(response) is None
    nothing = describe(wire, cursor=(b, -1))
    assert (nothing.topics, nothing.next_cursor) == ([], None)


def test_a_topic_that_is_not_there_is_listed_among_the_others(wire: Wire, topic: Topic) -> None:
    response = describe(wire, topic.name, "x/y", "..", "x" * 250, "zz-no-such-topic")
    assert [(found.name, found.error_code) for found in response.topics] == [
        ("..", INVALID_TOPIC),
        (topic.name, 0),
        ("x/y", INVALID_TOPIC),
        ("x" * 250, INVALID_TOPIC),
        ("zz-no-such-topic", UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert {found.topic_authorized_operations for found in response.topics} == {ALL_OPERATIONS}
    assert [len(found.partitions) for found in response.topics] == [0, 1, 0, 0, 0]


def test_names_are_in_javas_order(wire: Wire) -> None:
    response = describe(wire, "\uffee", "\U0001f600", "z", "é")
    assert [found.name for found in response.topics] == ["z", "é", "\U0001f600", "\uffee"]


def test_the_broker_bounds_a_page(topic_name: str) -> None:
    with serving({"max.request.partition.size.limit": "2"}) as server, Wire(server.bootstrap_servers) as wire:
        topic = {"name": topic_name, "num_partitions": 5, "replication_factor": 1}
        assert wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000).topics[0].error_code == 0
        wait_until(lambda: shown(describe(wire, topic_name))[0][1], within=60, what="the topic is shown")
        assert [shown(page) for page in pages(wire, topic_name, limit=2000)] == [
            [(topic_name, [0, 1])],
            [(topic_name, [2, 3])],
            [(topic_name, [4])],
        ]


def test_the_admin_of_kafka_python_describes_in_pages(server: Server, three: list[str]) -> None:
    a, b, c = three
    admin = kafka.KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    try:
        first = admin.describe_topic_partitions(three, response_partition_limit=5)
        rest = admin.describe_topic_partitions(three, cursor=first["next_cursor"])
    finally:
        admin.close()
    assert [topic["name"] for topic in first["topics"]] == [a, b, c]
    assert first["next_cursor"] == {"topic_name": c, "partition_index": 1}
    assert [part["partition_index"] for part in rest["topics"][0]["partitions"]] == [1, 2, 3]
