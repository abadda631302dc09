"""Controllers that lie to a quorum whose voters the log names: each gets an error, and the voters stay the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConnectionSettings
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import add_raft_voter as add
from pybroker.protocol.messages import update_raft_voter as update
from pybroker.protocol.messages.raft_messages import Listener, RaftMessagesRequest, RaftMessagesResponse
from pybroker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tests.support.dynamic_cluster import CLUSTER_ID, DynamicCluster, dynamic_cluster

pytestmark = pytest.mark.process

STRANGER, DIRECTORY = 77, bytes(range(1, 17))
NOWHERE = "127.0.0.1", 1


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamicCluster]:
    with dynamic_cluster(tmp_path_factory.mktemp("quorum"), 1) as running:
        running.wait_voters(1)
        yield running


@pytest.fixture(autouse=True)
def nothing_changes(cluster: DynamicCluster) -> Iterator[None]:
    def state() -> tuple[Any, ...]:
        quorum = cluster.quorum()
        return quorum.leader_id, quorum.leader_epoch, [(one.node_id, one.directory_id) for one in quorum.voters]

    before = state()
    yield
    assert state() == before


def query(cluster: DynamicCluster, request: Any, response: Any) -> ErrorCode:
    """Send a request to the leader's controller, and return the error code of its answer."""

    async def once() -> Any:
        connection = await Connection.open(cluster.controller_of(1), ConnectionSettings({}))
        try:
            return await asyncio.wait_for(connection.query(request, response), 60)
        finally:
            await connection.close()

    return ErrorCode(asyncio.run(once()).error_code)


def frame(**changed: Any) -> RaftMessagesRequest:
    """What a controller that nobody knows says of itself."""
    true: dict[str, Any] = {"cluster_id": CLUSTER_ID, "from_id": STRANGER, "from_directory_id": DIRECTORY, "to_id": 1}
    return RaftMessagesRequest(**(true | changed))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"to_id": 5}, ErrorCode.INVALID_VOTER_KEY),
        ({"to_id": -1, "messages": [b"x"]}, ErrorCode.INVALID_VOTER_KEY),
        ({"from_id": 1}, ErrorCode.INVALID_VOTER_KEY),
        ({"from_id": -4}, ErrorCode.INVALID_VOTER_KEY),
        ({"from_directory_id": bytes(16)}, ErrorCode.INVALID_VOTER_KEY),
        ({"messages": [b"\xff" * 100]}, ErrorCode.INVALID_REQUEST),
        ({"messages": [bytes(76)]}, ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_frames_that_cannot_be_are_refused(
    cluster: DynamicCluster, changed: dict[str, Any], expected: ErrorCode
) -> None:
    assert query(cluster, frame(**changed), RaftMessagesResponse) == expected


def test_one_who_says_that_it_is_nowhere_is_no_voter_by_that(cluster: DynamicCluster) -> None:
    listeners = [Listener(name="CONTROLLER", host=NOWHERE[0], port=NOWHERE[1])]
    assert query(cluster, frame(to_id=-1, listeners=listeners), RaftMessagesResponse) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"voter_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"voter_directory_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"listeners": []}, ErrorCode.INVALID_REQUEST),
        ({"listeners": [add.Listener(name=f"L{n}", host="h", port=1) for n in range(65)]}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": 1}, ErrorCode.DUPLICATE_VOTER),
        ({}, ErrorCode.REQUEST_TIMED_OUT),
    ],
    ids=str,
)
def test_voters_that_cannot_be_are_not_added(
    cluster: DynamicCluster, changed: dict[str, Any], expected: ErrorCode
) -> None:
    request: dict[str, Any] = {
        "cluster_id": CLUSTER_ID,
        "timeout_ms": 500,
        "voter_id": STRANGER,
        "voter_directory_id": DIRECTORY,
        "listeners": [add.Listener(name="CONTROLLER", host=NOWHERE[0], port=NOWHERE[1])],
    }
    assert query(cluster, add.AddRaftVoterRequest(**(request | changed)), add.AddRaftVoterResponse) == expected


def test_another_directory_of_a_voter_is_not_removed_and_not_updated(cluster: DynamicCluster) -> None:
    removal = RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=1, voter_directory_id=DIRECTORY)
    assert query(cluster, removal, RemoveRaftVoterResponse) == ErrorCode.VOTER_NOT_FOUND
    moved = update.UpdateRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        current_leader_epoch=cluster.quorum().leader_epoch,
        voter_id=1,
        voter_directory_id=DIRECTORY,
        listeners=[update.Listener(name="CONTROLLER", host=NOWHERE[0], port=NOWHERE[1])],
        kraft_version_feature=update.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )
    assert query(cluster, moved, update.UpdateRaftVoterResponse) == ErrorCode.VOTER_NOT_FOUND
    moved.current_leader_epoch += 5
    assert query(cluster, moved, update.UpdateRaftVoterResponse) == ErrorCode.UNKNOWN_LEADER_EPOCH
