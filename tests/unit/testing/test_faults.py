"""Faults on demand, seen by a client of raw frames: what the wire carries is exact."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from pybroker.testing import Broker, Outcome, Request
from tests.support.batches import batch_of
from tests.support.wire import Wire, fetch, produce, produced, request

pytestmark = pytest.mark.broker(num_partitions=2)


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    """A connection to a broker with the topics t and u, of two partitions each."""
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["t", "u"])
    with Wire(broker.bootstrap_servers) as connection:
        yield connection


def produce_error(wire: Wire, topic: str = "t", partition: int = 0, version: int = 9) -> int:
    return produced(wire.query(produce(topic, batch_of(b"x"), partition=partition, version=version))).error_code


def end_offset(broker: Broker, topic: str = "t") -> int:
    with Wire(broker.bootstrap_servers) as wire:
        partitions = [{"partition_index": 0, "timestamp": -1}]
        requested = wire.call("ListOffsets", 1, replica_id=-1, topics=[{"name": topic, "partitions": partitions}])
        return requested.topics[0].partitions[0].offset


@pytest.mark.parametrize("version", [3, 9, 12])
def test_the_next_requests_of_an_api_fail_and_later_ones_do_not(broker: Broker, wire: Wire, version: int) -> None:
    fault = broker.fail("Produce", "NOT_ENOUGH_REPLICAS", times=2)
    errors = [produce_error(wire, version=version) for _ in range(4)]
    assert errors == [19, 19, 0, 0]
    assert (fault.fired, fault.active) == (2, False)
    assert end_offset(broker) == 2, "what is refused is not appended"


def test_errors_queue_up_in_their_order(broker: Broker, wire: Wire) -> None:
    broker.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    broker.fail("Produce", 7)
    assert [produce_error(wire) for _ in range(3)] == [6, 7, 0]


def test_a_fault_of_a_partition_leaves_others_alone(broker: Broker, wire: Wire) -> None:
    with broker.fail("Produce", "MESSAGE_TOO_LARGE", topic="t", partition=1, times=None) as fault:
        assert [produce_error(wire, "t", 0), produce_error(wire, "u", 1), produce_error(wire, "t", 1)] == [0, 0, 10]
    assert produce_error(wire, "t", 1) == 0
    assert fault.fired == 1


def test_a_fault_of_a_topic_finds_it_by_its_id(broker: Broker, wire: Wire) -> None:
    topic_id = wire.call("Metadata", 12, topics=[{"name": "t", "topic_id": None}]).topics[0].topic_id
    broker.fail("Produce", "KAFKA_STORAGE_ERROR", topic="t")
    response = wire.query(produce("t", batch_of(b"x"), version=13, topic_id=topic_id))
    assert produced(response).error_code == 56


def test_of_a_fetch_the_partitions_that_a_fault_is_not_about_have_nothing_new(broker: Broker, wire: Wire) -> None:
    assert (produce_error(wire, "t", 0), produce_error(wire, "t", 1)) == (0, 0)
    broker.fail("Fetch", "OFFSET_OUT_OF_RANGE", topic="t", partition=1)
    errors = [
        {one.partition_index: (one.error_code, bool(one.records)) for one in response.responses[0].partitions}
        for response in (wire.query(fetch("t", partitions=[0, 1])) for _ in range(2))
    ]
    assert errors == [{0: (0, False), 1: (1, False)}, {0: (0, True), 1: (0, True)}]


def test_a_fetch_of_a_session_names_its_partitions_again_before_one_fails(broker: Broker, wire: Wire) -> None:
    first = wire.query(fetch("t", session_id=0, session_epoch=0))
    assert first.session_id != 0
    fault = broker.fail("Fetch", "OFFSET_OUT_OF_RANGE", topic="t")
    again = wire.query(fetch("t", partitions=[], session_id=first.session_id, session_epoch=1))
    assert (again.error_code, fault.fired) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    full = wire.query(fetch("t", session_id=0, session_epoch=0))
    assert full.responses[0].partitions[0].error_code == 1
    assert fault.fired == 1


def test_an_error_of_a_session_is_the_whole_fetchs(broker: Broker, wire: Wire) -> None:
    broker.fail("Fetch", "INVALID_FETCH_SESSION_EPOCH")
    assert wire.query(fetch("t")).error_code == 71


def test_a_request_of_the_control_plane_fails_where_its_answer_has_room(broker: Broker, wire: Wire) -> None:
    broker.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", group="mine", message="not today")
    assert wire.call("FindCoordinator", 2, key="other", key_type=0).error_code == 0
    refused = wire.call("FindCoordinator", 2, key="mine", key_type=0)
    assert (refused.error_code, refused.error_message) == (15, "not today")
    broker.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", topic="t")
    (topic,) = wire.call("Metadata", 9, topics=[{"name": "t"}]).topics
    assert topic.error_code == 3


def test_a_client_can_be_picked_by_its_id(broker: Broker, wire: Wire) -> None:
    broker.fail("Produce", "INVALID_RECORD", client_id="other", times=None)
    with Wire(broker.bootstrap_servers, client_id="other") as other:
        assert (produce_error(wire), produce_error(other)) == (0, 87)


def test_a_produce_that_wants_no_answer_loses_its_connection_when_it_fails(broker: Broker, wire: Wire) -> None:
    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    wire.send(produce("t", batch_of(b"x"), acks=0))
    assert wire.is_closed_by_peer()
    assert end_offset(broker) == 0


@pytest.mark.parametrize(("after", "appended"), [(False, 0), (True, 1)])
def test_a_connection_is_dropped_before_a_request_is_handled_or_in_place_of_its_answer(
    broker: Broker, wire: Wire, after: bool, appended: int
) -> None:
    fault = broker.disconnect("Produce", after=after)
    wire.send(produce("t", batch_of(b"x")))
    assert wire.is_closed_by_peer()
    fault.wait()
    assert end_offset(broker) == appended


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_dropped_answer_leaves_those_before_it(broker: Broker, wire: Wire, acks: int) -> None:
    """Of two pipelined requests the first is answered, the second handled and its connection closed."""
    broker.disconnect("Produce", after=True, topic="u")
    first, second = produce("t", batch_of(b"x")), produce("u", batch_of(b"y"), acks=acks)
    sent = wire.send(first)
    wire.send(second)
    assert produced(wire.receive(first, sent)).error_code == 0
    assert wire.is_closed_by_peer()
    assert (end_offset(broker, "t"), end_offset(broker, "u")) == (1, 1)


@pytest.mark.parametrize(("after", "appended"), [(False, 0), (True, 1)])
def test_an_ignored_request_is_never_answered_nor_what_follows_it(
    broker: Broker, wire: Wire, after: bool, appended: int
) -> None:
    fault = broker.ignore("Produce", after=after)
    wire.send(produce("t", batch_of(b"x")))
    fault.wait()
    wire.send(request("Metadata", 9, topics=None))
    with Wire(broker.bootstrap_servers) as other:
        assert other.call("Metadata", 9, topics=None).brokers, "other connections go on"
    assert end_offset(broker) == appended
    wire.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        wire.socket.recv(1)


def test_held_requests_wait_for_their_release_and_others_go_on(broker: Broker, wire: Wire) -> None:
    gate = broker.hold("Produce", topic="t")
    held = produce("t", batch_of(b"x"))
    sent = wire.send(held)
    gate.wait()
    with Wire(broker.bootstrap_servers) as other:
        assert produce_error(other, "u") == 0
        assert end_offset(broker) == 0
    gate.release()
    assert produced(wire.receive(held, sent)).error_code == 0
    assert produce_error(wire) == 0, "those that come later are not held"


def test_a_delayed_request_keeps_its_place_before_those_behind_it(broker: Broker, wire: Wire) -> None:
    broker.delay("Produce", 0.05, times=1)
    first, second = produce("t", batch_of(b"x")), request("Metadata", 9, topics=None)
    sent = [wire.send(first), wire.send(second)]
    assert produced(wire.receive(first, sent[0])).base_offset == 0
    assert wire.receive(second, sent[1]).brokers


def test_a_function_decides_by_what_it_returns(broker: Broker, wire: Wire) -> None:
    seen: list[Request] = []
    decisions = iter([None, "REQUEST_TIMED_OUT", 87, Outcome.DISCONNECT])

    def decide(requested: Request) -> object:
        seen.append(requested)
        return next(decisions)

    with broker.intercept("Produce", decide):
        assert [produce_error(wire) for _ in range(3)] == [0, 7, 87]
        wire.send(produce("t", batch_of(b"x")))
        assert wire.is_closed_by_peer()
    assert [requested.partitions for requested in seen] == [{"t": frozenset({0})}] * 4


def test_a_function_may_answer_itself_and_may_wait(broker: Broker, wire: Wire) -> None:
    async def decide(requested: Request) -> ListGroupsResponse:
        assert requested.version == 3
        return ListGroupsResponse(groups=[ListedGroup(group_id="invented", protocol_type="consumer")])

    with broker.intercept("ListGroups", decide, times=1):
        (group,) = wire.call("ListGroups", 3).groups
        assert group.group_id == "invented"
    assert wire.call("ListGroups", 3).groups == []


def test_what_a_function_raises_reaches_the_test(broker: Broker, wire: Wire) -> None:
    def decide(requested: Request) -> None:
        raise AssertionError("acks was to be 1")

    fault = broker.intercept("Produce", decide)
    wire.send(produce("t", batch_of(b"x")))
    assert wire.is_closed_by_peer()
    with pytest.raises(AssertionError, match="acks was to be 1"):
        fault.remove()


def test_narrowed_versions_are_advertised_and_served(broker: Broker, wire: Wire) -> None:
    assert wire.call("ListGroups", 3).groups == [], "the broker has accepted the connection"
    broker.limit_versions(Produce=(3, 7), Fetch=None)
    assert wire.is_closed_by_peer(), "clients ask for the versions again"
    with Wire(broker.bootstrap_servers) as fresh:
        shown = {one.api_key: (one.min_version, one.max_version) for one in fresh.call("ApiVersions", 2).api_keys}
        assert (shown[0], shown.get(1), shown[2][1] >= 9) == ((3, 7), None, True)
        assert produce_error(fresh, version=7) == 0
        fresh.send(produce("t", batch_of(b"x"), version=8))
        assert fresh.is_closed_by_peer()
    broker.limit_versions()
    with Wire(broker.bootstrap_servers) as fresh:
        assert fresh.query(fetch("t")).error_code == 0


def test_a_client_newer_than_the_narrowed_versions_learns_them(broker: Broker) -> None:
    broker.limit_versions(ApiVersions=(0, 1))
    with Wire(broker.bootstrap_servers) as wire:
        wire.send(request("ApiVersions", 3, client_software_name="x", client_software_version="1"))
        body = wire.read_frame()
    error = int.from_bytes(body[4:6], "big")
    assert (error, body[10:16]) == (35, b"\0\x12\0\0\0\1"), "version 0: the code, then key 18 from 0 to 1"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda broker: broker.fail("Prodcue", 1), "no API has the name 'Prodcue'; the nearest is 'Produce'"),
        (lambda broker: broker.fail("Produce", "NOT_LEADER"), "no error named 'NOT_LEADER'; the nearest is 'NOT_"),
        (lambda broker: broker.fail("Produce", 9999), "Kafka has no error code 9999"),
        (lambda broker: broker.fail("Produce", 1, partition=1), "partition=1 needs a topic"),
        (lambda broker: broker.fail("Heartbeat", 1, topic="t"), "Heartbeat requests contain no topics"),
        (lambda broker: broker.fail("Fetch", 1, group="g"), "Fetch requests contain no groups"),
        (lambda broker: broker.fail("Fetch", 1, times=0), "fail(times=0): expected a number of requests"),
        (lambda broker: broker.delay("Fetch", -1), "delay(seconds=-1): expected seconds such as 0.5"),
        (lambda broker: broker.limit_versions(Produce=(0, 99)), "Produce versions 0 to 99; pass a range within 0 to"),
        (lambda broker: broker.limit_versions(ApiVersions=None), "every client sends ApiVersions first"),
        (lambda broker: broker.advance(-1), "the clock cannot go back"),
    ],
)
def test_a_fault_that_cannot_happen_is_refused(broker: Broker, call: object, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        call(broker)  # type: ignore[operator]


def test_nothing_is_intercepted_that_nobody_asked_for(broker: Broker, wire: Wire) -> None:
    with broker.recording():
        assert produce_error(wire) == 0
    with broker.fail("Fetch", 1) as fault:
        assert produce_error(wire) == 0
        assert fault.fired == 0
    assert [one.api for one in broker.requests] == ["Produce"]
