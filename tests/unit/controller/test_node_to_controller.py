from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from pybroker.config.endpoint import Endpoint
from pybroker.controller import node_to_controller
from pybroker.controller.errors import (
    ControllerTimeoutError,
    NotControllerError,
    UnservedByControllerError,
)
from pybroker.controller.node_to_controller import ChannelSettings, NodeToControllerChannel
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pybroker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tests.support.scripted_controller import ScriptedController

HEARTBEAT = 63
LONG_MS = 20_000
SETTINGS = ChannelSettings(
    "broker-1", request_timeout_ms=LONG_MS, retry_backoff_ms=1, connections=1, max_in_progress=10
)


def alive(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(is_fenced=False)


def not_controller(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)


@asynccontextmanager
async def channel_to(
    find_leader: Callable[[], Endpoint | None],
    *bootstrap: Endpoint,
    settings: ChannelSettings = SETTINGS,
) -> AsyncIterator[NodeToControllerChannel]:
    channel = NodeToControllerChannel("heartbeats", settings, find_leader, [(it.host, it.port) for it in bootstrap])
    try:
        yield channel
    finally:
        await channel.close()


async def beat(channel: NodeToControllerChannel, timeout_ms: int = LONG_MS) -> BrokerHeartbeatResponse:
    return await channel.send(BrokerHeartbeatRequest(), BrokerHeartbeatResponse, timeout_ms=timeout_ms)


async def test_the_leader_that_the_quorum_names_is_asked_by_one_connection() -> None:
    async with ScriptedController({HEARTBEAT: alive}) as leader, channel_to(lambda: leader.endpoint) as channel:
        for _ in range(3):
            assert not (await beat(channel)).is_fenced
        assert (leader.connections, leader.requested[HEARTBEAT]) == (1, 3)


async def test_without_a_named_leader_the_bootstrap_servers_are_asked_in_turn() -> None:
    async with (
        ScriptedController({HEARTBEAT: not_controller}) as follower,
        ScriptedController({HEARTBEAT: alive}) as leader,
        channel_to(lambda: None, follower.endpoint, leader.endpoint) as channel,
    ):
        await beat(channel)
        await beat(channel)
        assert (follower.requested[HEARTBEAT], leader.requested[HEARTBEAT]) == (1, 2), "who answered is asked again"


async def test_a_request_goes_to_the_next_leader_when_the_last_one_dies() -> None:
    async with ScriptedController({HEARTBEAT: alive}) as first, ScriptedController({HEARTBEAT: alive}) as second:
        named = [first.endpoint]
        async with channel_to(lambda: named[0]) as channel:
            await beat(channel)
            await first.die()
            querying = asyncio.ensure_future(beat(channel))
            named[0] = second.endpoint
            await querying
            assert second.requested[HEARTBEAT] == 1


async def test_a_dead_leader_that_is_still_named_does_not_hold_up_what_another_answers() -> None:
    async with (
        ScriptedController({HEARTBEAT: alive}) as old,
        ScriptedController({HEARTBEAT: alive}) as new,
        channel_to(lambda: old.endpoint, old.endpoint, new.endpoint) as channel,
    ):
        await old.die()
        await beat(channel)
        await beat(channel)
        assert new.requested[HEARTBEAT] == 2


async def test_a_connection_that_ends_before_the_answer_is_opened_again() -> None:
    responses = [None, BrokerHeartbeatResponse(is_fenced=False)]
    async with (
        ScriptedController({HEARTBEAT: lambda _: responses.pop(0)}) as leader,
        channel_to(lambda: leader.endpoint) as channel,
    ):
        assert not (await beat(channel)).is_fenced
        assert leader.connections == 2


async def test_an_error_that_another_try_does_not_change_is_the_answer() -> None:
    stale = BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    async with (
        ScriptedController({HEARTBEAT: lambda _: stale}) as leader,
        channel_to(lambda: leader.endpoint) as channel,
    ):
        assert (await beat(channel)).error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_the_time_of_a_request_ends_the_search_and_says_why_there_was_no_answer() -> None:
    async with (
        ScriptedController({HEARTBEAT: not_controller}) as follower,
        channel_to(lambda: follower.endpoint) as channel,
    ):
        with pytest.raises(ControllerTimeoutError, match=r"BrokerHeartbeat.* within 50 ms: .* is not the active"):
            await beat(channel, timeout_ms=50)
    async with channel_to(lambda: None) as channel:
        with pytest.raises(ControllerTimeoutError, match="no controller is known"):
            await beat(channel, timeout_ms=20)


async def test_what_the_controller_does_not_speak_is_an_error_at_once() -> None:
    async with ScriptedController({HEARTBEAT: alive}) as leader, channel_to(lambda: leader.endpoint) as channel:
        with pytest.raises(UnservedByControllerError, match="API 67"):
            await channel.send(AllocateProducerIdsRequest(), AllocateProducerIdsResponse, timeout_ms=LONG_MS)


async def test_requests_beyond_the_bound_wait_for_their_turn() -> None:
    release = asyncio.Event()

    async def wait(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        await release.wait()
        return BrokerHeartbeatResponse()

    settings = SETTINGS._replace(connections=3, max_in_progress=2)
    async with (
        ScriptedController({HEARTBEAT: wait}) as leader,
        channel_to(lambda: leader.endpoint, settings=settings) as channel,
    ):
        querying = [asyncio.ensure_future(beat(channel)) for _ in range(4)]
        await leader.until_requested(HEARTBEAT, 2)
        with pytest.raises(ControllerTimeoutError):
            await beat(channel, timeout_ms=20)
        assert leader.requested[HEARTBEAT] == 2
        release.set()
        await asyncio.gather(*querying)
        assert leader.connections == 2, "two were under way together, each by its own connection"


async def test_a_closed_channel_ends_what_waits() -> None:
    async with channel_to(lambda: None) as channel:
        querying = asyncio.ensure_future(beat(channel))
        await channel.close()
        with pytest.raises(NotControllerError, match="stopping"):
            await querying


async def test_an_outage_that_lasts_has_one_line_and_one_at_its_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_to_controller, "_QUIET_S", 0.0)
    caplog.set_level(logging.INFO, "pybroker.controller")
    responses = [not_controller, not_controller, not_controller, alive, alive]
    async with (
        ScriptedController({HEARTBEAT: lambda request: responses.pop(0)(request)}) as leader,
        channel_to(lambda: leader.endpoint) as channel,
    ):
        await beat(channel)
        await beat(channel)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "is not the active controller" in caplog.text


async def test_a_leader_that_is_silent_is_not_waited_for_when_another_is_elected() -> None:
    never = asyncio.Event()

    async def stopped(_: BrokerHeartbeatRequest) -> None:
        await never.wait()

    async with ScriptedController({HEARTBEAT: stopped}) as old, ScriptedController({HEARTBEAT: alive}) as new:
        named = [old.endpoint]
        async with channel_to(lambda: named[0]) as channel:
            querying = asyncio.ensure_future(beat(channel))
            await old.until_requested(HEARTBEAT, 1)
            named[0] = new.endpoint
            channel.leader_changed()
            await querying
            assert (old.requested[HEARTBEAT], new.requested[HEARTBEAT]) == (1, 1)


async def test_an_election_has_no_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.controller")
    responses = [not_controller, not_controller, alive]
    async with (
        ScriptedController({HEARTBEAT: lambda request: responses.pop(0)(request)}) as leader,
        channel_to(lambda: leader.endpoint) as channel,
    ):
        await beat(channel)
    assert not caplog.records
