from __future__ import annotations

import asyncio
import os
import socket

import pytest

from pybroker.client.errors import ConnectionLostError
from pybroker.client.network.kept_connection import KeptConnection, server_name, settings_of_node
from tests.support.scripted_controller import ScriptedController

SETTINGS = settings_of_node("7", 20_000)


def server_of(node: ScriptedController) -> str:
    return server_name(node.endpoint.host, node.endpoint.port)


def test_an_address_of_ip_version_6_is_in_brackets() -> None:
    assert server_name("::1", 9092) == "[::1]:9092"
    assert server_name("host", 9092) == "host:9092"


async def test_one_connection_is_opened_however_many_ask_for_it_together() -> None:
    async with ScriptedController({}) as node:
        kept = KeptConnection(SETTINGS, None)
        opened = await asyncio.gather(*(kept.open(server_of(node)) for _ in range(3)))
        assert (len(set(opened)), node.connections) == (1, 1)
        assert kept.to(server_of(node)) is opened[0]
        await kept.close()
        assert kept.to(server_of(node)) is None


async def test_a_connection_that_has_ended_or_goes_elsewhere_is_replaced() -> None:
    async with ScriptedController({}) as first, ScriptedController({}) as second:
        kept = KeptConnection(SETTINGS, None)
        before = await kept.open(server_of(first))
        before.give_up("this test does")
        assert kept.to(server_of(first)) is None
        again = await kept.open(server_of(first))
        await kept.open(server_of(second))
        assert (first.connections, second.connections) == (2, 1)
        assert not again.usable
        await kept.close()


@pytest.mark.parametrize(("unacknowledged_ms", "expected"), [(None, (0, 0)), (2345, (1, 2345))])
async def test_a_connection_ends_where_the_peers_tcp_acknowledges_nothing_only_if_a_time_is_given(
    unacknowledged_ms: int | None, expected: tuple[int, int]
) -> None:
    async with ScriptedController({}) as node:
        kept = KeptConnection(SETTINGS, None, unacknowledged_ms=unacknowledged_ms)
        connection = await kept.open(server_of(node))
        with socket.socket(fileno=os.dup(connection._stream.descriptor)) as opened:
            keepalive = opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            timeout_ms = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert (keepalive, timeout_ms) == expected
        await kept.close()


async def test_none_is_opened_once_it_is_closed() -> None:
    async with ScriptedController({}) as node:
        kept = KeptConnection(SETTINGS, None)
        await kept.close()
        with pytest.raises(ConnectionLostError, match="stopping"):
            await kept.open(server_of(node))
