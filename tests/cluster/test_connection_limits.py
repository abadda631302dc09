"""Limits of connections of a broker: by listener, by address, at a time and in a second (KIP-402, KIP-612)."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import BROKER, SET, ConfigChange
from pybroker.testing import Broker
from tests.support.conditions import wait_until
from tests.support.wire import TIMEOUT_SECONDS, Wire, request

pytestmark = pytest.mark.timeout(120)


BRIEF_S = 0.5
"""So long nothing comes of a connection that has to wait."""


def connect(address: str, timeout_s: float = TIMEOUT_SECONDS) -> Wire:
    """A connection that the broker has answered on; raises ConnectionError or TimeoutError where it does not."""
    wire = Wire(address, timeout=timeout_s)
    try:
        wire.query(request("ApiVersions", 0))
    except BaseException:
        wire.socket.close()
        raise
    return wire


def is_let_in(address: str) -> bool:
    """Whether a connection is answered on; it is closed where it is not."""
    try:
        connect(address).socket.close()
    except ConnectionError:
        return False
    return True


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def change(broker: Broker, **configs: str) -> None:
    """Change settings of the running broker, by a connection that is closed again."""
    changes = [ConfigChange(name.replace("_", "."), value, SET) for name, value in configs.items()]
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_configs("1", changes, BROKER)


def test_an_address_has_no_more_connections_than_it_may_and_another_is_let_in_when_one_closes(broker: Broker) -> None:
    change(broker, **{"max.connections.per.ip": "2"})
    first, second = connect(broker.bootstrap_servers), connect(broker.bootstrap_servers)
    assert not is_let_in(broker.bootstrap_servers)
    first.socket.close()
    wait_until(lambda: is_let_in(broker.bootstrap_servers), within=60, what="the place of the first is free")
    second.socket.close()


def test_connections_at_a_time_are_limited_while_the_broker_runs(broker: Broker) -> None:
    change(broker, **{"listener.name.plaintext.max.connections": "1"})
    first = connect(broker.bootstrap_servers)
    with pytest.raises(TimeoutError):
        connect(broker.bootstrap_servers, BRIEF_S)
    first.socket.close()
    wait_until(lambda: is_let_in(broker.bootstrap_servers), within=60, what="the place of the first is free")


def test_an_address_that_is_too_fast_is_turned_away_and_let_in_again_when_its_quota_is_gone(broker: Broker) -> None:
    quota = {"ip": "127.0.0.1"}
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_client_quotas(quota, {"connection_creation_rate": 1})
        # As many as the whole span of the rate allows come at once: ten of a second each.
        began = time.monotonic()
        let_in = [is_let_in(broker.bootstrap_servers) for _ in range(12)]
        assert let_in == [True] * 10 + [False] * 2 or (time.monotonic() - began > 10 and all(let_in[:10]))
        admin.alter_client_quotas(quota, {"connection_creation_rate": None})
        wait_until(lambda: is_let_in(broker.bootstrap_servers), within=60, what="the limit is gone")


def test_connections_of_a_listener_that_come_too_fast_wait(broker: Broker) -> None:
    change(broker, **{"max.connection.creation.rate": "1"})
    host, _, port = broker.bootstrap_servers.rpartition(":")
    # The last one's turn comes after a minute and a half.
    waiting = [socket.create_connection((host, int(port))) for _ in range(100)]
    try:
        assert [responses(one, TIMEOUT_SECONDS) for one in waiting[:8]] == [True] * 8
        assert not responses(waiting[-1], BRIEF_S)
    finally:
        for one in waiting:
            one.close()


def responses(connection: socket.socket, within_s: float) -> bool:
    """Whether a request is answered in time: ApiVersions, version 0, without a client id."""
    connection.settimeout(within_s)
    connection.sendall(bytes([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255]))
    try:
        return bool(connection.recv(4))
    except TimeoutError:
        return False
