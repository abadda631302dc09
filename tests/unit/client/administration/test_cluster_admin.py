"""Admin's calls about the cluster, against a controller that a test scripts and a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.async_admin import AsyncAdmin
from pybroker.client.administration.log_dirs import Replica
from pybroker.client.administration.quorum import SAFE_DOWNGRADE, FeatureUpdate, RaftEndpoint
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import BrokerError, ClientError, SettingError, UnknownBrokerError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import add_raft_voter as add
from pybroker.protocol.messages import describe_cluster as nodes
from pybroker.protocol.messages import describe_quorum as quorum
from pybroker.protocol.messages import remove_raft_voter as remove
from pybroker.protocol.messages import unregister_broker as unregister
from pybroker.protocol.messages import update_features as features
from pybroker.protocol.schema import Message
from pybroker.testing import Broker
from tests.support.scripted_controller import Response, ScriptedController

DIRECTORY = bytes(range(16))


def key(request: type[Message]) -> int:
    found = request.__message__.api_key
    assert found is not None
    return found


async def requested(responses: dict[type[Message], Response], call: Any) -> Any:
    """What a call of an admin of controllers returns, the controller answering so."""
    async with ScriptedController({key(request): response for request, response in responses.items()}) as controller:

        def described(request: nodes.DescribeClusterRequest) -> Message:
            assert request.endpoint_type == nodes.CONTROLLERS
            at = controller.endpoint
            node = nodes.DescribeClusterBroker(broker_id=7, host=at.host, port=at.port)
            return nodes.DescribeClusterResponse(
                endpoint_type=nodes.CONTROLLERS, cluster_id="c", controller_id=7, brokers=[node]
            )

        controller.responses[key(nodes.DescribeClusterRequest)] = described
        servers = f"{controller.endpoint.host}:{controller.endpoint.port}"
        async with AsyncAdmin(properties={"bootstrap.controllers": servers}) as admin:
            return await call(admin)


def test_controllers_describe_themselves() -> None:
    described = asyncio.run(requested({}, lambda admin: admin.describe_cluster()))
    assert (described.cluster_id, described.controller_id) == ("c", 7)
    assert [node.node_id for node in described.brokers] == [7]


def test_a_quorum_is_described() -> None:
    def respond(request: quorum.DescribeQuorumRequest) -> Message:
        assert [topic.topic_name for topic in request.topics] == ["__cluster_metadata"]
        voter = quorum.ReplicaState(
            replica_id=7, replica_directory_id=DIRECTORY, log_end_offset=9, last_fetch_timestamp=5
        )
        part = quorum.DescribedPartitionData(leader_id=7, leader_epoch=3, high_watermark=8, current_voters=[voter])
        listener = quorum.Listener(name="CONTROLLER", host="::1", port=9093)
        return quorum.DescribeQuorumResponse(
            topics=[quorum.DescribedTopicData(topic_name="__cluster_metadata", partitions=[part])],
            nodes=[quorum.Node(node_id=7, listeners=[listener])],
        )

    described = asyncio.run(requested({quorum.DescribeQuorumRequest: respond}, lambda admin: admin.describe_quorum()))
    assert (described.leader_id, described.leader_epoch, described.high_watermark) == (7, 3, 8)
    (voter,) = described.voters
    assert (voter.directory_id, voter.end_offset) == (DIRECTORY, 9)
    assert (voter.last_fetch_ms, voter.last_caught_up_ms) == (5, None)
    assert list(map(str, described.endpoints[7])) == ["CONTROLLER://[::1]:9093"]


def test_a_voter_is_added_at_the_leader_that_is_looked_for_again() -> None:
    moved = iter([int(ErrorCode.NOT_LEADER_OR_FOLLOWER), 0])

    def respond(request: add.AddRaftVoterRequest) -> Message:
        assert (request.voter_id, request.voter_directory_id) == (4, DIRECTORY)
        assert [(at.name, at.host, at.port) for at in request.listeners] == [("CONTROLLER", "h", 1)]
        return add.AddRaftVoterResponse(error_code=next(moved), error_message=None)

    endpoints = [RaftEndpoint("CONTROLLER", "h", 1)]
    asyncio.run(
        requested({add.AddRaftVoterRequest: respond}, lambda admin: admin.add_raft_voter(4, DIRECTORY, endpoints))
    )
    assert next(moved, None) is None


def test_a_voter_that_is_none_is_not_removed() -> None:
    def respond(_: remove.RemoveRaftVoterRequest) -> Message:
        return remove.RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND, error_message="not one")

    with pytest.raises(BrokerError, match=r"voter 4.*not one") as refusal:
        asyncio.run(
            requested({remove.RemoveRaftVoterRequest: respond}, lambda admin: admin.remove_raft_voter(4, DIRECTORY))
        )
    assert refusal.value.code is ErrorCode.VOTER_NOT_FOUND


def test_a_broker_is_unregistered() -> None:
    seen = []

    def respond(request: unregister.UnregisterBrokerRequest) -> Message:
        seen.append(request.broker_id)
        return unregister.UnregisterBrokerResponse(error_message=None)

    asyncio.run(requested({unregister.UnregisterBrokerRequest: respond}, lambda admin: admin.unregister_broker(3)))
    assert seen == [3]


def test_features_get_levels_and_a_refusal_is_of_each() -> None:
    def respond(request: features.UpdateFeaturesRequest) -> Message:
        assert [(u.feature, u.max_version_level, u.upgrade_type) for u in request.feature_updates] == [("f", 2, 2)]
        return features.UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="too high")

    updates = {"f": FeatureUpdate(2, SAFE_DOWNGRADE)}
    refusals = asyncio.run(
        requested({features.UpdateFeaturesRequest: respond}, lambda admin: admin.update_features(updates))
    )
    assert refusals["f"].broker_message == "too high"


def test_brokers_and_controllers_are_not_asked_together() -> None:
    with pytest.raises(SettingError, match=r"bootstrap\.servers is also set"):
        AsyncAdmin("a:1", {"bootstrap.controllers": "b:1"})
    with pytest.raises(SettingError, match=r"no server found|is not set"):
        AsyncAdmin()
    with pytest.raises(ClientError, match="include_fenced=True needs brokers"):
        asyncio.run(requested({}, lambda admin: admin.describe_cluster(include_fenced=True)))


def test_a_broker_answers_for_the_cluster() -> None:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        assert admin.describe_quorum().leader_id == 1
        (node,) = admin.describe_cluster(include_fenced=True).brokers
        assert (node.node_id, node.fenced) == (1, False)
        before = admin.describe_features()["group.version"]
        assert admin.update_features({"group.version": FeatureUpdate(0, SAFE_DOWNGRADE)}) == {"group.version": None}
        after = admin.describe_features()["group.version"]
        assert (before.level, after.level) == (1, 0)
        assert after.epoch > before.epoch
        with pytest.raises(BrokerError, match="broker 99"):
            admin.unregister_broker(99)


def test_a_broker_that_does_not_run_is_refused_and_no_other_asked_in_its_place() -> None:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        calls: list[Callable[[], object]] = [
            lambda: admin.describe_producers([TopicPartition("t", 0)], broker=7),
            lambda: admin.describe_log_dirs([7]),
            lambda: admin.alter_replica_log_dirs({Replica(TopicPartition("t", 0), 7): "/"}),
        ]
        for call in calls:
            with pytest.raises(UnknownBrokerError, match=r"broker 7 is not in the cluster; the brokers are \d+$"):
                call()
