"""Brokers that were fenced a moment ago."""

from __future__ import annotations

from pybroker.broker.recent_deaths import NAMED_MS, RecentDeaths
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE, BrokerRegistration, ClusterImage, MetadataImage


def broker(*, fenced: bool, epoch: int = 7, leaves: bool = False) -> BrokerRegistration:
    return BrokerRegistration(2, bytes(16), epoch, {}, {}, fenced=fenced, in_controlled_shutdown=leaves)


def publish(deaths: RecentDeaths, *brokers: BrokerRegistration) -> None:
    image = MetadataImage(cluster=ClusterImage(brokers={one.id: one for one in brokers}))
    deaths.publish(MetadataDelta(EMPTY_IMAGE), image)


def test_a_broker_that_died_is_named_for_a_moment() -> None:
    now = [5]
    deaths = RecentDeaths(lambda: now[0])
    publish(deaths, broker(fenced=False))
    publish(deaths, broker(fenced=True))
    assert deaths.names(broker(fenced=True))
    publish(deaths, broker(fenced=True))
    now[0] += NAMED_MS - 1
    assert deaths.names(broker(fenced=True)), "what follows prolongs nothing, and ends nothing"
    now[0] += 1
    assert not deaths.names(broker(fenced=True))


def test_who_left_or_was_never_there_is_not_named() -> None:
    deaths = RecentDeaths(lambda: 5)
    publish(deaths, broker(fenced=True))
    assert not deaths.names(broker(fenced=True)), "it was fenced at the first look"
    publish(deaths, broker(fenced=False))
    publish(deaths, broker(fenced=True, leaves=True))
    assert not deaths.names(broker(fenced=True, leaves=True)), "it asked to leave"


def test_a_new_incarnation_is_another_broker() -> None:
    deaths = RecentDeaths(lambda: 5)
    publish(deaths, broker(fenced=False))
    publish(deaths, broker(fenced=True, epoch=8))
    assert not deaths.names(broker(fenced=True, epoch=8))
    publish(deaths, broker(fenced=False, epoch=8))
    publish(deaths, broker(fenced=True, epoch=8))
    assert not deaths.names(broker(fenced=True, epoch=9))
    assert deaths.names(broker(fenced=True, epoch=8))
