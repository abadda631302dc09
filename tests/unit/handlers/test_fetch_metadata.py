"""Fetch on listeners of controllers: who is answered, with what, and when."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pybroker.config.quorum import QuorumVoter
from pybroker.controller.cluster.events import NewTopic
from pybroker.controller.quorum.native import parse_metadata_batches
from pybroker.handlers.fetch_metadata import MOST_BYTES
from pybroker.handlers.metadata_log import TOPIC_ID
from pybroker.handlers.registry import registered_apis
from pybroker.machine.reply import Reply
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from tests.support.controllers import Running, build, running
from tests.support.metadata_leader import context_of

VOTERS = (QuorumVoter(1, "one", 9093), QuorumVoter(2, "two", 9093))
API = registered_apis(ListenerRole.CONTROLLER)[1]


def querying(offset: int = 0, epoch: int = -1, *, last_epoch: int = -1, **changes: Any) -> FetchRequest:
    partition = FetchPartition(
        fetch_offset=offset, current_leader_epoch=epoch, last_fetched_epoch=last_epoch, partition_max_bytes=1 << 20
    )
    topic = FetchTopic(topic="__cluster_metadata", partitions=[partition])
    return FetchRequest(**{"topics": [topic], "cluster_id": "c", **changes})


def most(request: FetchRequest) -> FetchRequest:
    """The request of a follower that takes whatever there is."""
    request.max_bytes = request.topics[0].partitions[0].partition_max_bytes = 2**31 - 1
    return request


async def responded(request: FetchRequest, leader: Running | None, version: int = 17) -> FetchResponse:
    outcome = API.handle(request, context_of(None if leader is None else leader.controller, VOTERS, version))
    response = await outcome if isinstance(outcome, Reply) else outcome
    assert isinstance(response, FetchResponse)
    return response


async def found(request: FetchRequest, leader: Running | None) -> PartitionData:
    response = await responded(request, leader)
    assert response.error_code == 0
    [topic] = response.responses
    [partition] = topic.partitions
    return partition


def test_it_is_served_from_the_first_version_that_followers_speak() -> None:
    assert (API.min_version, API.max_version) == (12, 18)
    assert registered_apis(ListenerRole.BROKER)[1].in_data_plane


async def test_what_is_committed_is_returned_with_its_end_and_the_leader(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        partition = await found(querying(), leader)
        assert partition.high_watermark == leader.controller.committed_offset
        assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 1)
        batches, size = parse_metadata_batches(partition.records or b"")
        assert size == len(partition.records or b"")
        assert (batches[0][0], batches[-1][1] + 1) == (0, partition.high_watermark)
        by_id = FetchTopic(topic_id=TOPIC_ID, partitions=querying().topics[0].partitions)
        assert (await found(querying(topics=[by_id]), leader)).records == partition.records


async def test_a_fetch_at_the_end_waits_for_a_commit_or_for_its_time(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        end, epoch = leader.controller.committed_offset, leader.controller.leader_epoch
        outcome = API.handle(querying(end, last_epoch=epoch, max_wait_ms=20_000), context_of(leader.controller))
        assert isinstance(outcome, Reply)
        assert not outcome.is_set
        await leader.register()
        await leader.channel.create_topics([NewTopic(name="t", num_partitions=1, replication_factor=1)])
        async with asyncio.timeout(60):
            response = await outcome
        records = response.responses[0].partitions[0].records
        assert parse_metadata_batches(records)[0][0][0] == end
        end = leader.controller.committed_offset
        assert (await found(querying(end, last_epoch=epoch, max_wait_ms=1), leader)).records == b""
        assert (await found(querying(end, last_epoch=epoch), leader)).error_code == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"topics": []}, ErrorCode.INVALID_REQUEST),
        ({"topics": [FetchTopic(topic="t", partitions=[FetchPartition()])]}, ErrorCode.INVALID_REQUEST),
        ({"topics": [FetchTopic(topic="__cluster_metadata", partitions=[FetchPartition()] * 2)]}, 42),
        ({"topics": [FetchTopic(topic="__cluster_metadata", partitions=[FetchPartition(partition=1)])]}, 42),
    ],
)
async def test_a_request_for_anything_else_is_refused_whole(tmp_path: Path, changes: dict[str, Any], code: int) -> None:
    async with running(tmp_path) as leader:
        assert (await responded(querying(**changes), leader)).error_code == code


async def test_who_names_no_cluster_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        assert (await found(querying(cluster_id=None), leader)).error_code == 0


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (querying(-1), ErrorCode.INVALID_REQUEST),
        (querying(5, last_epoch=-1), ErrorCode.INVALID_REQUEST),
        (querying(max_wait_ms=-1), ErrorCode.INVALID_REQUEST),
        (querying(epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (querying(epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (querying(1, last_epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_an_epoch_or_offset_that_cannot_be_is_an_error_of_the_partition(
    tmp_path: Path, request_: FetchRequest, code: ErrorCode
) -> None:
    async with running(tmp_path) as leader:
        partition = await found(request_, leader)
        assert (partition.error_code, partition.records) == (code, b"")
        assert partition.current_leader.leader_epoch == 1


async def test_who_does_not_lead_says_so(tmp_path: Path) -> None:
    assert (await found(querying(), None)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    built = build(tmp_path, (1, 2))
    await built.controller.open()
    assert (await found(querying(), built)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    await built.controller.stop()


async def test_the_endpoint_of_the_leader_comes_with_an_error(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        response = await responded(querying(epoch=0), leader)
        assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == [(1, "one", 9093)]
        assert (await responded(querying(), leader)).node_endpoints == []


@pytest.mark.parametrize("version", range(12, 19))
async def test_every_version_has_room_for_the_answer_of_who_does_not_lead(tmp_path: Path, version: int) -> None:
    async with running(tmp_path) as leader:
        response = await responded(querying(epoch=0), leader, version)
        assert bool(response.node_endpoints) == (version >= 17)
        decoded, _ = decode(FetchResponse, encode(response, version), version)
        assert decoded.responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_one_answer_carries_no_more_than_a_mebibyte_and_those_that_follow_the_rest(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        await leader.register()
        for number in range(8):
            names = [
                NewTopic(name=f"{number}-{one}-{'x' * 200}", num_partitions=12, replication_factor=1)
                for one in range(200)
            ]
            await leader.channel.create_topics(names)
        offset, epoch, sizes = 0, -1, []
        while offset < leader.controller.committed_offset:
            records = (await found(most(querying(offset, last_epoch=epoch)), leader)).records or b""
            batches, size = parse_metadata_batches(records)
            assert (batches[0][0], size) == (offset, len(records))
            sizes.append(size)
            offset, epoch = batches[-1][1] + 1, leader.controller.leader_epoch
        assert len(sizes) > 1
        assert max(sizes) <= MOST_BYTES == 1 << 20


@pytest.mark.parametrize(("offset", "last_epoch"), [(99, 1), (1, 0), (2, 0)])
async def test_a_log_that_is_not_this_one_diverges(tmp_path: Path, offset: int, last_epoch: int) -> None:
    async with running(tmp_path) as leader:
        partition = await found(querying(offset, last_epoch=last_epoch), leader)
        assert partition.error_code == 0
        assert partition.diverging_epoch.end_offset >= 0
        assert partition.records == b""


async def test_an_offset_within_a_batch_is_no_place_of_a_follower(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        await leader.register()
        await leader.channel.create_topics([NewTopic(name="t", num_partitions=3, replication_factor=1)])
        end = leader.controller.committed_offset
        assert (await found(querying(end - 1, last_epoch=1), leader)).diverging_epoch.end_offset >= 0
