"""What the data plane gets of settings and quotas of addresses, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from pybroker.config.broker import BrokerConfig
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage
from pybroker.metadata.quotas import ClientQuotasImage, quota_entity
from pybroker.net.connection_limits import ConnectionLimits, ConnectionQuotas, build_connection_limits
from pybroker.net.descriptors import Shares

if TYPE_CHECKING:
    from pybroker.net.native import DataPlane

SHARES = Shares(1000, connections=400, log_files=400)
TWO = {
    "listeners": "INNER://:9091,OUTER://:9092",
    "listener.security.protocol.map": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
    "inter.broker.listener.name": "INNER",
}


class Recorder:
    """A data plane that keeps its limits."""

    def __init__(self) -> None:
        self.given: list[ConnectionLimits] = []

    def set_connection_limits(self, limits: ConnectionLimits) -> None:
        self.given.append(limits)


def image(**rates: float) -> MetadataImage:
    by_entity = {
        quota_entity([("ip", name or None)]): {"connection_creation_rate": rate} for name, rate in rates.items()
    }
    by_entity[quota_entity([("user", "ann")])] = {"producer_byte_rate": 1.0}
    return MetadataImage(quotas=ClientQuotasImage(by_entity=by_entity))


def test_the_listener_between_brokers_is_protected_where_clients_have_another() -> None:
    limits = build_connection_limits(BrokerConfig(TWO), SHARES, {}, {})
    assert {name: is_protected for name, (_, _, is_protected) in limits.listeners.items()} == {
        "INNER": True,
        "OUTER": False,
    }
    alone = build_connection_limits(BrokerConfig({}), SHARES, {}, {})
    assert [is_protected for _, _, is_protected in alone.listeners.values()] == [False]
    assert (alone.max_connections, alone.creation_rate, alone.address_rate) == (400, None, None)


def test_quotas_of_addresses_are_in_force_with_the_image_and_names_once_they_have_addresses() -> None:
    async def follow() -> list[ConnectionLimits]:
        plane = Recorder()
        config = BrokerConfig({"max.connections.per.ip.overrides": "10.0.0.9:3"})
        quotas = ConnectionQuotas(cast("DataPlane", plane), config, SHARES)
        delta = MetadataDelta(EMPTY_IMAGE)
        quotas.publish(delta, image(**{"": 5.0, "10.0.0.1": 7.0, "localhost": 9.0}))
        assert quotas._look_up_task is not None
        await quotas._look_up_task
        quotas.publish(delta, image(**{"": 5.0, "10.0.0.1": 7.0, "localhost": 9.0}))
        quotas.reconfigure(BrokerConfig({"max.connections.per.ip": "4"}))
        quotas.publish(delta, EMPTY_IMAGE)
        quotas.stop()
        return plane.given

    first, known, resolved, changed, *_, last = asyncio.run(follow())
    assert first.max_of_address == {"10.0.0.9": 3}
    assert (known.address_rate, known.rate_of_address) == (5.0, {"10.0.0.1": 7.0})
    assert set(resolved.rate_of_address) - {"10.0.0.1"} <= {"127.0.0.1", "::1"}
    assert len(resolved.rate_of_address) == 2
    assert (changed.max_per_address, changed.rate_of_address) == (4, resolved.rate_of_address)
    assert (last.address_rate, last.rate_of_address) == (None, {})
