"""Requests of a broker to others, against brokers that a script answers for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from pybroker.broker.broker_channel import BrokerChannel, BrokerChannelSettings, build_broker_channels
from pybroker.client.errors import ConnectionLostError, UnservedApiError
from pybroker.config.broker import BrokerConfig
from pybroker.config.endpoint import Endpoint
from pybroker.metadata.image import BrokerRegistration, ClusterImage, MetadataImage
from pybroker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pybroker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from pybroker.protocol.schema import Message
from tests.support.conditions import wait_until
from tests.support.scripted_controller import ScriptedController

HEARTBEAT = 63
LONG_MS = 20_000
SETTINGS = BrokerChannelSettings(node_id=1, listener="INNER", max_idle_ms=-1, backoff_ms=1)


def alive(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(is_fenced=False)


def image_of(endpoints: Mapping[int, Endpoint], *, fenced: bool = False, listener: str = "INNER") -> MetadataImage:
    brokers = {
        node: BrokerRegistration(node, bytes(16), 7, {listener: (it.host, it.port)}, {}, fenced=fenced)
        for node, it in endpoints.items()
    }
    return MetadataImage(cluster=ClusterImage(brokers=brokers))


@asynccontextmanager
async def channel_by(
    image: Callable[[], MetadataImage], settings: BrokerChannelSettings = SETTINGS
) -> AsyncIterator[BrokerChannel]:
    channel = BrokerChannel("questions", settings, image)
    try:
        yield channel
    finally:
        await channel.close()


async def query(channel: BrokerChannel, node: int = 2, timeout_ms: int = LONG_MS) -> BrokerHeartbeatResponse:
    return await channel.send(node, BrokerHeartbeatRequest(), BrokerHeartbeatResponse, timeout_ms=timeout_ms)


async def test_each_broker_is_asked_by_one_connection_to_its_listener() -> None:
    async with ScriptedController({HEARTBEAT: alive}) as two, ScriptedController({HEARTBEAT: alive}) as three:
        image = image_of({2: two.endpoint, 3: three.endpoint})
        async with channel_by(lambda: image) as channel:
            await asyncio.gather(*(query(channel, node) for node in (2, 3, 2, 2)))
        assert (two.connections, two.requested[HEARTBEAT]) == (1, 3)
        assert (three.connections, three.requested[HEARTBEAT]) == (1, 1)


async def test_what_the_broker_asks_itself_needs_no_connection() -> None:
    requested: list[Message] = []

    async def respond(request: Message) -> Message:
        requested.append(request)
        return BrokerHeartbeatResponse(error_code=7)

    async with channel_by(lambda: image_of({})) as channel:
        with pytest.raises(ConnectionLostError, match="does not serve requests yet"):
            await query(channel, 1)
        channel.serve_here(respond)
        request = BrokerHeartbeatRequest()
        assert (await channel.send(1, request, BrokerHeartbeatResponse, timeout_ms=LONG_MS)).error_code == 7
        assert requested[0] is request


async def test_a_broker_that_cannot_be_found_is_an_error_that_says_why() -> None:
    async with ScriptedController({HEARTBEAT: alive}) as two:
        images = [image_of({}), image_of({2: two.endpoint}, fenced=True), image_of({2: two.endpoint})]
        settings = SETTINGS._replace(listener="OTHER")
        async with channel_by(lambda: images.pop(0), settings) as channel:
            for reported in ("has no broker 2", "broker 2 is fenced", "has no listener OTHER, only INNER"):
                with pytest.raises(ConnectionLostError, match=reported):
                    await query(channel)


async def test_a_connection_that_ends_before_the_answer_fails_its_requests_and_the_next_one_opens_another() -> None:
    responses = [None, BrokerHeartbeatResponse(is_fenced=False)]
    async with ScriptedController({HEARTBEAT: lambda _: responses.pop(0)}) as two:
        image = image_of({2: two.endpoint})
        async with channel_by(lambda: image) as channel:
            with pytest.raises(ConnectionLostError):
                await query(channel)
            assert not (await query(channel)).is_fenced
        assert (two.connections, two.requested[HEARTBEAT]) == (2, 2), "nothing is sent twice"


async def test_all_that_wait_for_a_broker_that_is_not_there_fail_with_the_same_try() -> None:
    removed = ScriptedController({})
    async with removed:
        image = image_of({2: removed.endpoint})
    async with channel_by(lambda: image, SETTINGS._replace(backoff_ms=1_000_000)) as channel:
        outcomes = await asyncio.gather(*(query(channel) for _ in range(5)), return_exceptions=True)
        assert all(isinstance(it, ConnectionLostError) for it in outcomes)
        with pytest.raises(ConnectionLostError, match=r"was not sent to broker 2 within 20 ms: .*\d+\.\d+"):
            await query(channel, timeout_ms=20)


async def test_a_broker_that_moved_is_asked_at_its_new_address_without_a_rest() -> None:
    removed = ScriptedController({})
    async with removed:
        images = [image_of({2: removed.endpoint})]
    async with ScriptedController({HEARTBEAT: alive}) as two:
        settings = SETTINGS._replace(backoff_ms=1_000_000)
        async with channel_by(lambda: images[0], settings) as channel:
            with pytest.raises(ConnectionLostError):
                await query(channel)
            images[0] = image_of({2: two.endpoint})
            await query(channel)


async def test_requests_of_a_broker_that_is_fenced_meanwhile_fail_at_once() -> None:
    never = asyncio.Event()

    async def wait(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        await never.wait()
        return BrokerHeartbeatResponse()

    async with ScriptedController({HEARTBEAT: wait}) as two:
        image = image_of({2: two.endpoint})
        async with channel_by(lambda: image) as channel:
            querying = asyncio.ensure_future(query(channel))
            await two.until_requested(HEARTBEAT, 1)
            channel.follow(image)
            assert not querying.done()
            channel.follow(image_of({2: two.endpoint}, fenced=True))
            with pytest.raises(ConnectionLostError, match="fenced"):
                await querying


async def test_requests_beyond_the_bounds_wait_or_are_refused() -> None:
    release = asyncio.Event()

    async def wait(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        await release.wait()
        return BrokerHeartbeatResponse()

    async with ScriptedController({HEARTBEAT: wait}) as two:
        image = image_of({2: two.endpoint})
        settings = SETTINGS._replace(max_in_progress=1, max_waiting=3)
        async with channel_by(lambda: image, settings) as channel:
            querying = [asyncio.ensure_future(query(channel)) for _ in range(2)]
            await two.until_requested(HEARTBEAT, 1)
            with pytest.raises(ConnectionLostError, match="was not sent to broker 2 within 20 ms"):
                await query(channel, timeout_ms=20)
            querying.append(asyncio.ensure_future(query(channel)))
            await asyncio.wait(querying, timeout=0)
            with pytest.raises(ConnectionLostError, match="3 requests wait for broker 2"):
                await query(channel)
            assert two.requested[HEARTBEAT] == 1
            release.set()
            await asyncio.gather(*querying)


async def test_a_broker_that_does_not_answer_in_time_is_connected_to_anew() -> None:
    responses: list[asyncio.Event] = [asyncio.Event()]

    async def wait(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        if responses:
            await responses.pop().wait()
        return BrokerHeartbeatResponse()

    async with ScriptedController({HEARTBEAT: wait}) as two:
        image = image_of({2: two.endpoint})
        async with channel_by(lambda: image) as channel:
            with pytest.raises(ConnectionLostError, match="no answer within"):
                await query(channel, timeout_ms=50)
            await query(channel)
        assert two.connections == 2


async def test_an_idle_connection_is_closed_and_opened_again() -> None:
    async with ScriptedController({HEARTBEAT: alive}) as two:
        image = image_of({2: two.endpoint})
        async with channel_by(lambda: image, SETTINGS._replace(max_idle_ms=1)) as channel:
            await query(channel)
            await asyncio.to_thread(wait_until, lambda: not channel._peers, within=60, what="closed")
            await query(channel)
        assert two.connections == 2


async def test_what_a_broker_does_not_speak_is_an_error_at_once() -> None:
    async with ScriptedController({HEARTBEAT: alive}) as two:
        image = image_of({2: two.endpoint})
        async with channel_by(lambda: image) as channel:
            with pytest.raises(UnservedApiError, match="API 67"):
                await channel.send(2, AllocateProducerIdsRequest(), AllocateProducerIdsResponse, timeout_ms=LONG_MS)


async def test_the_end_of_the_channel_ends_what_waits_for_an_answer_and_what_waits_for_a_connection() -> None:
    removed = ScriptedController({})
    async with removed:
        pass
    never = asyncio.Event()

    async def wait(_: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        await never.wait()
        return BrokerHeartbeatResponse()

    async with ScriptedController({HEARTBEAT: wait}) as two:
        image = image_of({2: two.endpoint, 3: removed.endpoint})
        async with channel_by(lambda: image, SETTINGS._replace(backoff_ms=1_000_000)) as channel:
            querying = [asyncio.ensure_future(query(channel))]
            await two.until_requested(HEARTBEAT, 1)
            with pytest.raises(ConnectionLostError):
                await query(channel, 3)
            querying.append(asyncio.ensure_future(query(channel, 3)))
            await asyncio.wait(querying, timeout=0)
            await channel.close()
            for outcome in await asyncio.gather(*querying, return_exceptions=True):
                assert isinstance(outcome, ConnectionLostError)
                assert "stopping" in str(outcome)
            with pytest.raises(ConnectionLostError, match="stopping"):
                await query(channel)


async def test_connections_to_brokers_end_where_their_tcp_acknowledges_nothing_for_the_request_timeout() -> None:
    config = BrokerConfig({"controller.quorum.request.timeout.ms": "1234"})
    async with ScriptedController({HEARTBEAT: alive}) as two:
        image = image_of({2: two.endpoint}, listener=config.inter_broker_listener)
        channels = build_broker_channels(config, lambda: image, None)
        for channel in channels:
            await query(channel)
            assert channel._peers[2].kept._unacknowledged_ms == 1234
        await channels.close()
