"""The channel to the controller of the same process: what it answers is in the image."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybroker.controller.cluster.brokers import session_key
from pybroker.controller.cluster.events import NewTopic
from pybroker.controller.errors import StaleBrokerEpochError
from pybroker.machine.parts import MAX_WEIGHT
from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.create_partitions import CreatePartitionsTopic
from tests.support.controllers import running

A_LISTENER: Any = {
    "listeners": {"P": ("h", 1)},
    "security_protocols": {"P": 0},
    "features": SUPPORTED_FEATURES,
}
"""What a broker registers with that the cluster has room for."""


async def test_a_created_topic_is_in_the_image_when_the_answer_comes(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.register()
        [created] = await one.channel.create_topics([NewTopic(name="t", num_partitions=-1, replication_factor=-1)])
        assert (created.error_code, created.num_partitions, created.replication_factor) == (ErrorCode.NONE, 2, 1)
        assert one.image.topics.by_id[created.topic_id].name == "t"


async def test_what_is_named_in_two_parts_of_a_large_request_is_refused_in_both(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.register()
        large = [NewTopic(name=name, num_partitions=MAX_WEIGHT, replication_factor=1) for name in "aba"]
        created = await one.channel.create_topics(large)
        assert [topic.error_code for topic in created] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
        others = [f"nothing-{number}" for number in range(MAX_WEIGHT)]
        topic_id = one.image.topics.by_name["b"].topic_id
        first, *_, last = await one.channel.delete_topics(["b", *others, topic_id])
        assert first == last
        assert first.error_message == "The provided topic name maps to an ID that was already supplied."
        assert one.image.topics.by_name.keys() == {"b"}


async def test_a_request_for_too_many_partitions_is_refused_as_a_whole(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.register()
        topics = [NewTopic(name=f"t{n}", num_partitions=5_000, replication_factor=1) for n in range(2)]
        created = await one.channel.create_topics(
            [NewTopic(name="d", num_partitions=-1, replication_factor=1), *topics]
        )
        assert {topic.error_code for topic in created} == {ErrorCode.POLICY_VIOLATION}
        assert "10002, at most 10000" in (created[0].error_message or "")
        await one.channel.create_topics([NewTopic(name=name, num_partitions=1, replication_factor=1) for name in "ab"])
        more = [CreatePartitionsTopic(name=name, count=5_002, assignments=None) for name in "ab"]
        enlarged = await one.channel.create_partitions(more)
        assert {topic.error_code for topic in enlarged} == {ErrorCode.POLICY_VIOLATION}
        assert {len(topic.partitions) for topic in one.image.topics.by_id.values()} == {1}


async def test_a_broker_that_falls_silent_is_fenced(tmp_path: Path) -> None:
    async with running(tmp_path, session_timeout_ms=30) as one:
        result = await one.channel.register_broker(
            2,
            incarnation_id=b"j" * 16,
            listeners={"P": ("h", 1)},
            security_protocols={"P": 0},
            features=SUPPORTED_FEATURES,
        )
        beat = await one.channel.heartbeat(2, result.broker_epoch)
        assert not beat.is_fenced
        fenced = asyncio.Event()
        await until(
            lambda: one.image.cluster.brokers[2].fenced and not one.controller.has_timer(session_key(2)), fenced
        )
        other = await one.channel.register_broker(
            2,
            incarnation_id=b"k" * 16,
            listeners={"P": ("h", 1)},
            security_protocols={"P": 0},
            features=SUPPORTED_FEATURES,
        )
        assert other.error_code is ErrorCode.NONE
        assert (await one.channel.unregister_broker(2)).error_code is ErrorCode.NONE


async def until(condition: Callable[[], bool], never: asyncio.Event) -> None:
    """Give the loop turns until the condition holds; the test's own time limit is the end."""
    while not condition():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(never.wait(), 0.005)


async def test_a_broker_that_is_alive_is_not_replaced_by_another(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        for incarnation, code in ((b"j", ErrorCode.NONE), (b"k", ErrorCode.DUPLICATE_BROKER_REGISTRATION)):
            result = await one.channel.register_broker(
                2,
                incarnation_id=incarnation * 16,
                listeners={"P": ("h", 1)},
                security_protocols={"P": 0},
                features=SUPPORTED_FEATURES,
            )
            assert result.error_code is code


async def test_a_stale_broker_gets_no_producer_ids(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        with pytest.raises(StaleBrokerEpochError):
            await one.channel.allocate_producer_ids(1, 0)
