"""Brokers that have failed: suspected before the metadata fences them, named for a while after."""

from __future__ import annotations

import asyncio

import pytest

from pybroker.broker import failed_brokers as module
from pybroker.broker.failed_brokers import NAMED_MS, FailedBrokers
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE, BrokerRegistration, ClusterImage, MetadataImage


def registration(*, fenced: bool = False, epoch: int = 7, leaves: bool = False) -> BrokerRegistration:
    return BrokerRegistration(2, bytes(16), epoch, {}, {}, fenced=fenced, in_controlled_shutdown=leaves)


class Node:
    """A node that knows of broker 2, and its record of failed brokers."""

    def __init__(self) -> None:
        self.now_ms = 5
        self.image = EMPTY_IMAGE
        self.failed = FailedBrokers(lambda: self.image, lambda: self.now_ms)
        self.publish(registration())

    def publish(self, broker: BrokerRegistration) -> None:
        self.image = MetadataImage(cluster=ClusterImage(brokers={broker.id: broker}))
        self.failed.publish(MetadataDelta(EMPTY_IMAGE), self.image)


@pytest.fixture
def node() -> Node:
    return Node()


async def waiter(failed: FailedBrokers) -> asyncio.Task[None]:
    """A task that waits for a change."""
    waiting = asyncio.ensure_future(failed.changed())
    await asyncio.wait([waiting], timeout=0)
    assert not waiting.done()
    return waiting


async def test_a_broker_is_suspected_until_the_metadata_fences_it(node: Node) -> None:
    assert not node.failed.has_suspects()
    node.failed.suspect(2)
    assert node.failed.has_suspects()
    assert node.failed.are_suspected([1, 2])
    assert not node.failed.are_suspected([1, 3])
    waiting = await waiter(node.failed)
    node.failed.publish(MetadataDelta(EMPTY_IMAGE), node.image)
    await waiting
    assert node.failed.are_suspected([2]), "this image changes no broker"
    waiting = await waiter(node.failed)
    node.publish(registration(fenced=True))
    await waiting
    assert not node.failed.has_suspects()
    assert node.failed.is_named(registration(fenced=True))


async def test_a_closed_connection_that_the_event_loop_has_not_seen_is_polled() -> None:
    image = MetadataImage(cluster=ClusterImage(brokers={2: registration()}))
    failed = FailedBrokers(lambda: image, lambda: 5, lambda: failed.suspect(2))
    assert failed.has_suspects()
    assert failed.are_suspected([2])


async def test_a_broker_that_is_reached_again_is_not_suspected(node: Node) -> None:
    node.failed.reached(2)
    node.failed.suspect(2)
    waiting = await waiter(node.failed)
    node.failed.reached(2)
    await waiting
    assert not node.failed.has_suspects()


async def test_a_new_incarnation_is_not_suspected(node: Node) -> None:
    node.failed.suspect(2)
    node.publish(registration(epoch=8))
    assert not node.failed.are_suspected([2])


async def test_a_suspicion_ends_by_itself(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SUSPECTED_S", 0.01)
    node.failed.suspect(2)
    node.failed.suspect(2)
    await node.failed.changed()
    assert not node.failed.has_suspects()


@pytest.mark.parametrize("image", [EMPTY_IMAGE, None], ids=["unknown", "fenced"])
async def test_a_broker_that_leads_nothing_is_not_suspected(node: Node, image: MetadataImage | None) -> None:
    node.publish(registration(fenced=True))
    node.image = image or node.image
    node.failed.suspect(2)
    assert not node.failed.has_suspects()


def test_a_fenced_broker_is_named_for_a_while(node: Node) -> None:
    fenced = registration(fenced=True)
    node.publish(fenced)
    assert node.failed.is_named(fenced)
    node.publish(registration(fenced=True))
    node.now_ms += NAMED_MS - 1
    assert node.failed.is_named(fenced), "a later image does not change how long it is named"
    node.now_ms += 1
    assert not node.failed.is_named(fenced)


def test_a_broker_that_shut_down_or_was_fenced_before_is_not_named(node: Node) -> None:
    leaving = registration(fenced=True, leaves=True)
    node.publish(leaving)
    assert not node.failed.is_named(leaving)
    failed = FailedBrokers(lambda: node.image, lambda: 5)
    fenced = MetadataImage(cluster=ClusterImage(brokers={2: registration(fenced=True)}))
    failed.publish(MetadataDelta(EMPTY_IMAGE), fenced)
    assert not failed.is_named(registration(fenced=True)), "the first image had it fenced"


def test_a_new_incarnation_is_another_broker(node: Node) -> None:
    node.publish(registration(fenced=True, epoch=8))
    assert not node.failed.is_named(registration(fenced=True, epoch=8))
    node.publish(registration(epoch=8))
    node.publish(registration(fenced=True, epoch=8))
    assert not node.failed.is_named(registration(fenced=True, epoch=9))
    assert node.failed.is_named(registration(fenced=True, epoch=8))
